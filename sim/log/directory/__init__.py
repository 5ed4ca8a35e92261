"""directory."""
