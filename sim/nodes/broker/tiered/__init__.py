"""Tiered storage on a broker (KIP-405)."""
