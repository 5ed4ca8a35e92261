"""Garbage collection while a run lasts."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let Python look for garbage cycles less often: a run makes many objects and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
