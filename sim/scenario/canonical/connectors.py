"""Connectors, written out with every default filled in."""

from collections.abc import Sequence

from sim.scenario.model.connectors import ConnectorSpec
from sim.scenario.text.plain import Plain
from sim.scenario.text.quantities import show_duration, show_rate, show_size


def connectors(specs: Sequence[ConnectorSpec]) -> dict[str, Plain]:
    """The key ``connectors``; a scenario without any does not have it."""
    return {"connectors": [_connector(spec) for spec in specs]} if specs else {}


def _connector(spec: ConnectorSpec) -> Plain:
    plain: dict[str, Plain] = {"name": spec.name, "kind": spec.kind}
    plain["topics"] = list(spec.topics)
    plain["tasks"] = spec.tasks
    if spec.is_source:
        plain["rate"] = show_rate(spec.rate_per_s)
        plain["record.size"] = show_size(spec.record_size)
        plain["poll"] = show_duration(spec.poll_us)
        plain["batch"] = spec.batch
        plain["stop"] = show_duration(spec.stop_us)
    else:
        plain["processing"] = show_duration(spec.processing_us)
        plain["buffer"] = spec.buffer
        plain["delivery"] = spec.delivery
    plain["start"] = show_duration(spec.start_us)
    if spec.rack:
        plain["rack"] = spec.rack
    plain["config"] = dict(_settings(spec))
    return plain


def _settings(spec: ConnectorSpec) -> dict[str, Plain]:
    """Those that it may be given."""
    kept: dict[str, Plain] = {}
    by_interval = spec.is_exactly_once and spec.config.text("transaction.boundary") == "interval"
    for name, value in spec.settings().items():
        if name.startswith("exactly.once.") and not spec.is_source:
            continue
        if name == "transaction.boundary" and not spec.is_exactly_once:
            continue
        if name == "transaction.boundary.interval.ms" and not by_interval:
            continue
        kept[name] = value
    return kept
