"""Sweeps of many configurations over the same seeds."""
