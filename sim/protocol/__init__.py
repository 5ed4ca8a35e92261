"""Kafka's protocol as pure state machines: an event in, effects out."""
