"""Processes in simulated time (SimPy): brokers, controllers, ZooKeeper servers and clients."""
