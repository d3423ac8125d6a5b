"""What the played cloud knows of each resource type, and what it refuses; nothing here knows Terraform's protocol."""
