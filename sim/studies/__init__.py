"""Studies: the protocol's machines on a plain host, for questions that need no data plane."""
