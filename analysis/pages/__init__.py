"""Templates, style and scripts of every page, and values in words."""
