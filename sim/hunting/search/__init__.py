"""Guided search over schedules of faults."""
