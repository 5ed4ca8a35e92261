"""zk_mode."""
