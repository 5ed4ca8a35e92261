"""The share coordinator (KIP-932)."""
