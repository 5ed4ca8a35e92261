"""A partition's log as real files. Synchronous: no clock, no chance."""
