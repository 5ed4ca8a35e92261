"""``pytest scenarios/`` runs the scenarios in this checkout, too.

Elsewhere the plugin loads itself; here its entry point is left out (pyproject.toml): importing it
would choose the compiled packages before tests that plant defects can ask for the sources.
"""

from sim.suite.pytest_plugin import pytest_addoption, pytest_collect_file

__all__ = ["pytest_addoption", "pytest_collect_file"]
