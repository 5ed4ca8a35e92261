"""Partitions that a broker leads: Produce, Fetch, ISR changes, transactions."""
