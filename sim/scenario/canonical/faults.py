"""Faults written out, and quotas: their times, and their keys as their forms say."""

from collections.abc import Callable
from typing import Any, Final

from sim.faults.fault import Fault, Form
from sim.ids import server_name
from sim.protocol.messages.admin import QuotaAlteration
from sim.scenario.model.acls import acl_keys
from sim.scenario.model.quotas import DEFAULT_ENTITY
from sim.scenario.text.instants import show_instant
from sim.scenario.text.plain import Plain
from sim.scenario.text.quantities import show_bandwidth, show_duration


def entry(fault: Fault) -> Plain:
    """An entry of ``faults:``."""
    name: dict[str, Plain] = {"name": fault.name} if fault.name else {}
    if not fault.mtbf_us:
        at = show_instant(fault.after or (fault.at_us, fault.at_us + fault.spread_us))
        return {**name, "at": at, **_what(fault), **_lasting(fault)}
    when: dict[str, Plain] = {**name, "mtbf": show_duration(fault.mtbf_us)}
    if fault.for_us is not None:
        when["mttr"] = show_duration(fault.for_us)
    return {**when, **_what(fault)}


def _lasting(fault: Fault) -> dict[str, Plain]:
    if fault.for_us is None or fault.is_instant():
        return {}
    return {"for": show_duration(fault.for_us)}


def _what(fault: Fault) -> dict[str, Plain]:
    """A fault without its times; keys that are not given and have no default are left out."""
    plain: dict[str, Plain] = {"do": fault.kind}
    for name, key in fault.keys().items():
        value = getattr(fault, name)
        if key.form == "quota":
            plain.update(quota_keys(value))
        elif key.form == "acl":
            plain.update(acl_keys(value))
        elif value is not None and value != ():
            plain[key.name] = _SHOWN.get(key.form, _as_it_is)(value)
    return plain


def _as_it_is(value: Any) -> Plain:  # noqa: ANN401 - as its form says
    return value  # type: ignore[no-any-return]


def _texts(value: Any) -> list[Plain]:  # noqa: ANN401 - as its form says
    return [target.text for target in value]


_SHOWN: Final[dict[Form, Callable[[Any], Plain]]] = {
    "targets": lambda targets: _texts(targets) if len(targets) > 1 else targets[0].text,
    "target": lambda targets: targets[0].text,
    "side": _texts,
    "messages": list,
    "requests": list,
    "duration": show_duration,
    "spread": lambda spread: {
        "p50": show_duration(spread.p50_us),
        "p99": show_duration(spread.p99_us),
    },
    "bandwidth": show_bandwidth,
    "partition": str,
    "replica": str,
    "partitions": lambda places: [str(place) for place in places],
    "topic": lambda topic: topic.name,
    "config": lambda changes: {change.name: change.value for change in changes},
    "broker config": lambda changes: {change.name: change.value for change in changes},
    "broker": server_name,
    "brokers": lambda nodes: [server_name(node) for node in nodes],
    "token": lambda token: token.name,
    "release": lambda release: release.name,
    "metadata release": lambda release: release.name,
    "faults": lambda choices: [_what(choice) | _lasting(choice) for choice in choices],
}
"""Of forms whose values are not plain."""

_REAL = ("request_percentage", "controller_mutation_rate")
"""Quotas that need not be whole numbers."""


def quota_keys(quota: QuotaAlteration) -> dict[str, Plain]:
    """Quotas of one entity, as a scenario gives them."""
    plain: dict[str, Plain] = {}
    for kind, name in quota.entity:
        plain["client.id" if kind == "client-id" else kind] = name or DEFAULT_ENTITY
    for key, value in quota.changes:
        if value is not None:
            plain[key] = value if key in _REAL else int(value)
    removed = [key for key, value in quota.changes if value is None]
    if removed:
        plain["remove"] = list(removed)
    return plain
