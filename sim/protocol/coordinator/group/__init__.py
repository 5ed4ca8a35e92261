"""The group coordinator: classic, consumer (KIP-848) and share groups (KIP-932), and offsets."""
