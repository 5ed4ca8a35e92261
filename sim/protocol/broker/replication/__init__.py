"""The replica manager (``kafka.server.ReplicaManager``): settings, events, fetchers, its parts."""
