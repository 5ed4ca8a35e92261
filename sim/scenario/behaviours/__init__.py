"""Behaviours that differ between Kafka's releases: positions, and since which release."""
