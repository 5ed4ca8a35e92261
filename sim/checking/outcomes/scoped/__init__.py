"""Numbers of parts of a run that no verdict has: changes of leaders, states of keys."""
