"""Files of a log directory under a simulated page cache."""
