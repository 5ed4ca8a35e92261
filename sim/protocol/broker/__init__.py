"""A broker's machines: replica manager, lifecycle, metadata API, share partitions."""
