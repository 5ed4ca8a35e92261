"""Checker of a run: invariants after every event, and the verdict at the end."""
