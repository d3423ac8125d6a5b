"""What changes the cloud. `tpuenv deploy` and `destroy` run cdktf for a person (cdktf_explained); `tpuenv apply` and
`destroy --confirm` run Terraform for a build, with the environment's lock held (apply_reviewed, destroy_confirmed).

Imports tpuenv.recovery, tpuenv.review, tpuenv.state, tpuenv.google and tpuenv.terraform.
"""
