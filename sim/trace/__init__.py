"""A run's trace: the tables, and the writer that turns rows into Parquet and a digest."""
