"""expect."""
