"""Google Cloud, faked: its resource types and the APIs that Terraform and tpuenv call."""
