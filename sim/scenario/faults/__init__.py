"""Faults of a scenario: entries of the file to faults, targets and instants."""
