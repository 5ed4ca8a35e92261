"""Partitions that a broker follows: fetches, truncation, adopted offsets."""
