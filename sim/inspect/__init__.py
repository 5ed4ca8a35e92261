"""Doctor and dump of log directories."""
