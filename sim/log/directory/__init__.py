"""Log directories of one process (``LogManager``), and their checkpoints."""
