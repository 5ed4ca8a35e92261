"""Cores of a computer, which the threads of its server share.

A thread that has work needs a core until the work is done: a core that is free in time is taken,
else the one that is free first. What is left out: time slices. A piece of work, some tens of
microseconds, is shorter than one of Linux's, so that it is not interrupted.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from sim.kernel import Kernel
from sim.units import Micros


@dataclass(slots=True)
class _Core:
    """Work that one core has to do, as times that do not meet, in their order."""

    begins: list[Micros] = field(default_factory=list)
    ends: list[Micros] = field(default_factory=list)

    def free_at(self, at: Micros, service_us: Micros) -> Micros:
        """First instant from ``at`` on at which it is free for so long."""
        for place in range(bisect_right(self.ends, at), len(self.ends)):
            if at + service_us <= self.begins[place]:
                break
            at = self.ends[place]
        return at

    def occupy(self, begin: Micros, end: Micros) -> None:
        """Books a time that is free; times that touch become one."""
        place = bisect_left(self.begins, begin)
        if place < len(self.begins) and self.begins[place] == end:
            end = self.ends.pop(place)
            del self.begins[place]
        if place and self.ends[place - 1] == begin:
            self.ends[place - 1] = end
        else:
            self.begins.insert(place, begin)
            self.ends.insert(place, end)

    def forget(self, before: Micros) -> None:
        """Drops times that are past."""
        past = bisect_right(self.ends, before)
        del self.begins[:past], self.ends[:past]


class Cores:
    """The cores of one computer.

    Args:
        kernel: For the present instant: what is past is forgotten.
        count: Number of cores.
    """

    __slots__ = ("_cores", "_kernel")

    def __init__(self, kernel: Kernel, count: int) -> None:
        self._kernel = kernel
        self._cores = [_Core() for _ in range(count)]

    def take(self, at: Micros, service_us: Micros) -> Micros:
        """Books a core for so long, at ``at`` or as soon as one has time; returns the begin."""
        if service_us <= 0:
            return at
        now = self._kernel.time
        chosen, begin = self._cores[0], -1
        for core in self._cores:
            core.forget(now)
            free = core.free_at(at, service_us)
            if begin < 0 or free < begin:
                chosen, begin = core, free
            if free == at:
                break
        chosen.occupy(begin, begin + service_us)
        return begin

    def speed_up(self, by: int) -> None:
        """Divides what is left of all booked times by ``by``."""
        now = self._kernel.time
        for core in self._cores:
            core.forget(now)
            begins, ends = core.begins, core.ends
            core.begins, core.ends = [], []
            for begin, end in zip(begins, ends, strict=True):
                sooner = now + max(begin - now, 0) // by, now + (end - now) // by
                if sooner[0] < sooner[1]:
                    core.occupy(*sooner)
