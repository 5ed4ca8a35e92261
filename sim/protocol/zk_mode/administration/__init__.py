"""Administrators' changes in ZooKeeper mode: deletion, settings, reassignment."""
