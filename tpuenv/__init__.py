"""The `tpuenv` command. Nothing else imports it."""
