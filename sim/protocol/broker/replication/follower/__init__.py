"""Fetchers of the partitions that a broker follows."""
