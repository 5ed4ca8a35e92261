"""Invariants that are checked as each row is written."""
