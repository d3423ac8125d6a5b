"""The queues and nodes of an environment, as plain Kubernetes objects."""
