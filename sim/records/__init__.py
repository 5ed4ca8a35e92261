"""Codecs of Kafka's internal topics and of the metadata log."""
