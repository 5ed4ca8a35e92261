"""Where time passes: network, disk and host."""
