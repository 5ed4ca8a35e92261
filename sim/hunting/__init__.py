"""Search for failures that nobody wrote down: hunt, shrink, capsule, fork."""
