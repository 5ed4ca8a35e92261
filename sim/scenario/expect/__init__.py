"""Expectations of a scenario (``expect:``): bounds, and how each is measured."""
