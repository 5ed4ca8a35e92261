"""Two groups of runs as one table: simulated ones and rehearsals, or any with a reference."""
