"""Releases of Kafka in one cluster: those of its clients beside those of its servers."""
