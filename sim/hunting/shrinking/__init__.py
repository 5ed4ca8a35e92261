"""Delta debugging of scenarios to the smallest one that fails in the same way."""
