"""One partition's log: segments, indexes, reading, recovery, retention."""
