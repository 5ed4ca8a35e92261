"""Commands that put runs side by side."""
