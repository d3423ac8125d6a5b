"""What `tpuenv rehearse` and `tpuenv rehearse-pipeline` share. The only package that imports rehearsal/."""
