"""Explanation of a run: what went wrong, why, and what would have helped."""
