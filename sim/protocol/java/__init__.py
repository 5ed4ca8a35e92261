"""Java's hash codes, and the iteration order of its hash tables."""
