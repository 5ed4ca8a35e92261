"""Models of time: network, disk and host."""
