"""YAML with line marks, quantities with units, and problems that name their line."""
