"""Scenarios: the YAML file as types, and the run it describes."""
