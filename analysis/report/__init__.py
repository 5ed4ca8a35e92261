"""The report of a run: findings by Spark, figures, and the page."""
