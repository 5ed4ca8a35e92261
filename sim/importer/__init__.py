"""From a running cluster's files to a scenario: ``logquake import``."""
