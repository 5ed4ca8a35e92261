"""The same past and many futures."""
