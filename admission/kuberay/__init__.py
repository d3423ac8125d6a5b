"""KubeRay's rules."""
