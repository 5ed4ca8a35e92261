"""Spark sessions, trace tables as DataFrames, and percentiles."""
