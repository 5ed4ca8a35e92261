"""Conditions of a disk that a fault can bring about."""

from typing import Literal, TypeAlias

Trouble: TypeAlias = Literal["slow", "slow reads", "stalled", "failed", "full", "lying"]
