"""What we change in the CDKTF CLI at run time, and why."""
