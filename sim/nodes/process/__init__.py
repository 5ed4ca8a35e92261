"""Parts of every process: its life and clock, machines and effects, sockets and channels, costs."""
