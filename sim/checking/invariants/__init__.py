"""invariants."""
