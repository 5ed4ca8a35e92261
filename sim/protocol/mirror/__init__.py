"""MirrorMaker 2: copies, offset syncs, checkpoints."""
