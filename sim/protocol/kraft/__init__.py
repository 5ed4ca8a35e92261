"""The metadata quorum (``KafkaRaftClient``): elections, replication by fetch, snapshots, voters."""
