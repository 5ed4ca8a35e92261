"""cleaning."""
