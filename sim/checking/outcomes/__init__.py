"""Results that the verdict computes at the end of a run."""
