"""Faults in canonical form: every default written out, in one order."""
