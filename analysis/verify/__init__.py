"""Spark verification of a run from its trace and segment files."""
