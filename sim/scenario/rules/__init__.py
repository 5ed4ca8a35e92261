"""Validation of a scenario across its parts, as Kafka or the simulator requires it."""
