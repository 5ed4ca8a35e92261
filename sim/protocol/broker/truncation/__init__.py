"""Truncation of followers' logs, by Kafka's versions."""
