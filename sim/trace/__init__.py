"""What a run records: the tables, and the writer that turns rows into Parquet and a digest."""
