"""truncation."""
