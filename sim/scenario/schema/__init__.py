"""The scenario file as a whole: its model and its JSON Schema."""
