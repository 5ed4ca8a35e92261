"""From a running cluster, read-only, to the sources of a scenario: ``--bootstrap``."""
