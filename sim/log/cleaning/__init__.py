"""Compaction: which records of a log stay, and the cleaner that rewrites it."""
