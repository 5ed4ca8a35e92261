"""Scripts that keep the house: its rules beyond the linters, and the documents made from code."""
