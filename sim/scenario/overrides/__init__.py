"""Overrides of a scenario's keys: ``--set``, ``--vary`` and patches."""
