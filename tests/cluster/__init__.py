"""What only an API server can prove: `make test-cluster`, against the cluster that KUBECONFIG names."""
