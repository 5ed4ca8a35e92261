"""Coordinators of groups, share groups and transactions, on their internal topics."""
