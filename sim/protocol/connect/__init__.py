"""Kafka Connect's tasks: source and sink, at least once and exactly once."""
