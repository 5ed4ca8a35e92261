"""Spark jobs from trace and segment files to durability and latency reports."""
