"""raft_groups."""
