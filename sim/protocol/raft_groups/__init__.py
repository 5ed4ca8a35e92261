"""Redpanda's replication: the replicas of each partition are a Raft group."""
