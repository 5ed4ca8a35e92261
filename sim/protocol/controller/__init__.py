"""The KRaft controller (``QuorumController``): brokers, partitions, topics, configs, quotas."""
