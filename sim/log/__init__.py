"""A partition's log (``UnifiedLog``) as real files. Synchronous: no clock, no chance."""
