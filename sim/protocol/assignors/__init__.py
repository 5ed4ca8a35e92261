"""Client-side partition assignors: range, round robin, sticky, cooperative sticky."""
