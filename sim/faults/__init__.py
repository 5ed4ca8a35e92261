"""Fault injection: faults as data, and the calendar that starts and heals them."""
