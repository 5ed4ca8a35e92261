"""Log directories of a process in simulated time, and the metadata log's files."""
