"""Metadata records, and the image that they replay into."""
