"""Requests to the partitions that a broker leads."""
