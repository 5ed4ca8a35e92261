"""Log directories of one process, and their checkpoints."""
