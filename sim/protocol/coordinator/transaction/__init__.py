"""transaction."""
