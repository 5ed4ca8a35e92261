"""Server of the Model Context Protocol: the commands as tools of a program that converses."""
