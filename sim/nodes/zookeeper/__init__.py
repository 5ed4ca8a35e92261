"""A ZooKeeper server's process."""
