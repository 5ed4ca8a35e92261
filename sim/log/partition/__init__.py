"""One partition's log (``UnifiedLog``): segments, indexes, reading, recovery, retention."""
