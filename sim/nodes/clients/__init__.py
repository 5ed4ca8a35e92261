"""Processes of clients: producers, consumers, share consumers, administrator; and workloads."""
