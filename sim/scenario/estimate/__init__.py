"""Expected time, memory and disk of a run, from its scenario alone."""
