"""Was it right: invariants after every event, and the judgement at the end."""
