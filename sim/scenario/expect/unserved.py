"""Topics that did not take what producers sent: a run with one is no pass, unless it says so.

``lost_acked: 0`` holds of itself where nothing was acknowledged, as latency bounds do not. Two
things are therefore judged without a line for them, topic by topic:

* nothing was acknowledged, although producers sent records;
* one permanent error refused at least :data:`SHARE_PERCENT` of what they sent. Permanent is an
  error that Kafka's clients do not retry (``ApiException`` without ``RetriableException``): no
  patience of the producer and no healing of the cluster would have changed the answer.

A scenario that means it says so with an expectation about the whole run, for the topic or for all
of them, which then judges the number: ``failed`` or ``unknown`` whose bound holds and admits more
than 0, or ``acked`` with an upper bound. Records of ``acks=0`` are acknowledged when they are sent.
"""

from collections.abc import Iterable, Mapping
from typing import Final, cast

from sim.error_codes import ErrorCode
from sim.protocol.clients.producer.events import PARTITION_OUT_OF_RANGE, PARTITIONER_FAILED
from sim.scenario.expect.bounds import found_in, needs_slice, report_for
from sim.scenario.model.run import Expectation

SHARE_PERCENT: Final = 10
"""Of a topic's records sent: so many refused for one permanent reason are a large part."""


def unserved(expect: Iterable[Expectation], verdict: Mapping[str, object]) -> tuple[str, ...]:
    """Sentences, one for each topic that did not take what it was sent; none for a run that did.

    Args:
        expect: The scenario's expectations.
        verdict: ``verdict.json`` as a mapping: ``topics`` and ``failed_by_error``.
    """
    topics = cast("Mapping[str, Mapping[str, int]]", verdict["topics"])
    errors = cast("Mapping[str, Mapping[str, int]]", verdict["failed_by_error"])
    lines = tuple(expect)
    found = []
    for topic in sorted(topics):
        counts, why = topics[topic], errors.get(topic, {})
        if counts["sent"] > 0 and counts["acked"] == 0:
            names: tuple[str, ...] = ("failed", "unknown")
            sentence = _nothing(topic, counts, why)
        else:
            names = ("failed",)
            sentence = _refused(topic, counts, why)
        if sentence and not any(_says_so(line, topic, names, verdict) for line in lines):
            found.append(sentence)
    return tuple(found)


def _nothing(topic: str, counts: Mapping[str, int], why: Mapping[str, int]) -> str:
    sent, failed, unknown = counts["sent"], counts["failed"], counts["unknown"]
    parts = [f"{failed:,} failed ({_listed(why)})"] if failed else []
    parts += [f"{unknown:,} with unknown outcome"] if unknown else []
    return f"topic {topic}: nothing was acknowledged of {sent:,} records sent: {', '.join(parts)}"


def _refused(topic: str, counts: Mapping[str, int], why: Mapping[str, int]) -> str:
    sent = counts["sent"]
    large = {
        error: records
        for error, records in why.items()
        if _is_permanent(error) and records * 100 >= sent * SHARE_PERCENT
    }
    if not large:
        return ""
    return (
        f"topic {topic}: of {sent:,} records sent a large part was refused for good, "
        f"by an error that no retry mends: {_listed(large)}"
    )


def _listed(errors: Mapping[str, int]) -> str:
    ranked = sorted(errors.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{error} {records:,}" for error, records in ranked)


def _is_permanent(error: str) -> bool:
    """True if Kafka has the error and its clients do not retry it; ``NONE`` is none.

    A partitioner's failure is one, too: ``send()`` throws it.
    """
    if error.startswith((PARTITIONER_FAILED, PARTITION_OUT_OF_RANGE)):
        return True
    known = ErrorCode.__members__.get(error)
    return known is not None and known is not ErrorCode.NONE and not known.retriable


def _says_so(
    line: Expectation, topic: str, names: tuple[str, ...], verdict: Mapping[str, object]
) -> bool:
    """True if a line of ``expect`` speaks of records that are refused, or of few acknowledged."""
    scope = line.scope
    if needs_slice(line) or scope.partition >= 0 or scope.topic not in ("", topic):
        return False
    number = found_in(line.name, report_for(line, verdict))
    if number is None or not line.holds(number):
        return False
    if line.name == "acked":
        return line.high is not None
    return line.name in names and number > 0
