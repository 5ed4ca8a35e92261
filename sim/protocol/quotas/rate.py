"""Rate of a quota: a value per second over a few samples, as Kafka's metrics count it.

Values are summed in samples of a second or so; samples older than the window are purged. So a burst
is averaged over the window, and old values do not count. Instants are milliseconds, as in Kafka.

Source: ``org.apache.kafka.common.metrics.stats.{SampledStat,WindowedSum,Rate,SimpleRate}``.
"""

from sim.units import SECOND

MS_PER_S = 1_000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.value = 0
        self.start_ms = now_ms
        self.last_ms = now_ms

    def reset(self, now_ms: int) -> None:
        self.value = 0
        self.start_ms = now_ms
        self.last_ms = now_ms


class SampledRate:
    """A rate over ``samples`` samples of ``window_ms`` each; one more is kept while it overlaps."""

    def __init__(self, samples: int, window_ms: int) -> None:
        assert samples > 0
        assert window_ms > 0
        self._count = samples
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: int, now_ms: int) -> None:
        """Counts a value at the instant; a negative one is subtracted."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def total(self, now_ms: int) -> int:
        """Sum over the window."""
        self._purge(now_ms)
        return sum([sample.value for sample in self._samples])

    def simple_window_ms(self, now_ms: int) -> int:
        """Length of the samples, at least one of them: strict with the first burst."""
        return max(now_ms - self._oldest_ms(now_ms), self._window_ms)

    def full_window_ms(self, now_ms: int) -> int:
        """Length of the samples, at least all but one of them: lenient with the first burst."""
        elapsed = now_ms - self._oldest_ms(now_ms)
        lacking = self._count - 1 - elapsed // self._window_ms
        return max(elapsed + max(lacking, 0) * self._window_ms, 1)

    def simple_rate(self, now_ms: int) -> float:
        """Per second, over :meth:`simple_window_ms`."""
        return self.total(now_ms) / (self.simple_window_ms(now_ms) / MS_PER_S)

    def full_rate(self, now_ms: int) -> float:
        """Per second, over :meth:`full_window_ms`."""
        return self.total(now_ms) / (self.full_window_ms(now_ms) / MS_PER_S)

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._count + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _oldest_ms(self, now_ms: int) -> int:
        self._purge(now_ms)
        return min([sample.start_ms for sample in self._samples], default=now_ms)

    def _purge(self, now_ms: int) -> None:
        age = self._count * self._window_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= age:
                sample.reset(now_ms)


def ms_of(now_us: int) -> int:
    """An instant in the unit of rates."""
    return now_us * MS_PER_S // SECOND
