"""Rows of the trace as typed tuples, written from the schema by ``tools/trace_rows.py``."""
