"""The dashboards and alerts of the stack `observability`, held against a sample day with the real Prometheus.

`make test-dashboards` tests the alerts and writes `results.yaml`, from which the pictures in docs/ are drawn.
"""
