"""Replicas and log directories: where they lie, and moves between them."""
