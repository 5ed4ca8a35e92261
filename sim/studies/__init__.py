"""Studies: the minds of the protocol on a plain host, for questions that need no data plane."""
