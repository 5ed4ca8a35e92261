"""Work of the commands about failures: capsules, shrink, hunt, fork."""
