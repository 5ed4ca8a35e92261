"""A ZooKeeper ensemble (3.8): servers, sessions, the tree."""
