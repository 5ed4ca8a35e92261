"""Log compaction (``Cleaner``): records that stay, and the rewriting of segments."""
