"""Kafka Streams' tasks: consumer, producer and outputs of a stream thread."""
