"""Models of a scenario file's parts, frozen: they parse, validate and write themselves."""
