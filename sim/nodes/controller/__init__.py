"""A controller's process: quorum and controller in simulated time, on the metadata log's files."""
