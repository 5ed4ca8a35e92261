"""Log directories of replicas: assignments, and moves between directories."""
