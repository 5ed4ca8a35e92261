"""Runs of a scenario: the directory, phases, trials, and the result."""
