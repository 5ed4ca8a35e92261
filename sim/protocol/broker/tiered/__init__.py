"""Tiered storage: copies of closed segments in an object store (KIP-405)."""
