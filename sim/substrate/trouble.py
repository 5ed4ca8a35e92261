"""Conditions of a disk that a fault can bring about."""

from typing import Literal, TypeAlias

Trouble: TypeAlias = Literal["slow", "stalled", "failed", "full", "lying"]
