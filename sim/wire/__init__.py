"""Codecs of Kafka's bytes: record batches, and the records inside the internal topics."""
