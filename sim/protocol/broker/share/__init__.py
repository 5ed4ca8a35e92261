"""Share partitions at their leaders (KIP-932)."""
