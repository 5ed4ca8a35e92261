"""Sizes of messages that are written from Kafka's schemas: complete, and wrong if a schema is."""

from dataclasses import replace

import pytest

from sim.wire.definitions import definition
from sim.wire.fields import parse_fields
from tools import message_sizes


def test_the_sizes_of_messages_are_up_to_date():
    written = dict(message_sizes.files())
    found = set(message_sizes.SIZES.glob("*.py"))
    assert {path.stem for path in found - written.keys()} == {"__init__", "encoding"}
    for path, text in written.items():
        assert path.read_text(encoding="utf-8") == text, "run: make docs"


def planted(monkeypatch, name, **structures):
    """The newest release with other fields in a message; its own are ``own``."""
    real = definition(name)
    fields = {key: parse_fields(text) for key, text in structures.items()}
    own = fields.pop("own", real.schema.fields)
    schema = replace(real.schema, fields=own, structures={**real.schema.structures, **fields})
    other = real._replace(schema=schema)
    find = message_sizes.definition
    monkeypatch.setattr(
        message_sizes, "definition", lambda which: other if which == name else find(which)
    )


def test_a_field_of_a_fixed_size_is_part_of_the_number(monkeypatch):
    before = message_sizes.module("x", ["HeartbeatResponse"])
    assert "return 16\n" in before
    planted(monkeypatch, "HeartbeatResponse", own="throttleTimeMs:int32 errorCode:int16 new:int64")
    assert message_sizes.module("x", ["HeartbeatResponse"]) == before.replace("16", "24")


def test_a_field_that_varies_is_a_parameter_and_no_fixed_size_is_left(monkeypatch):
    own = "throttleTimeMs:int32 errorCode:int16 group:string old:string?@0-3 note:string?#0=null"
    planted(monkeypatch, "HeartbeatResponse", own=own)
    text = message_sizes.module("x", ["heartbeat_response"])
    assert "def heartbeat_response(*, group: str, note: str | None = None) -> Bytes:" in text
    found = "return 16 + wire.text(group) + (wire.tagged(wire.text(note)) if note else 0)"
    assert found in text
    with pytest.raises(ValueError, match=r"varies: call sizes\.heartbeat_response"):
        message_sizes.module("x", ["HeartbeatResponse"])


def test_structures_are_loops_and_one_that_is_called_is_a_sum(monkeypatch):
    planted(
        monkeypatch, "HeartbeatResponse", own="topics:[]Topic",
        Topic="name:string parts:[]Part", Part="id:int32 data:records?",
    )  # fmt: skip
    text = message_sizes.module("x", ["heartbeat_response"])
    assert "*, topics: Collection[tuple[str, Collection[Bytes]]]" in text
    assert "    for name_1, parts_1 in topics:\n        size += 1 + wire.text(name_1)" in text
    assert "        for data_2 in parts_1:\n            size += 5 + wire.blob(data_2)" in text
    message_sizes._functions.cache_clear()
    text = message_sizes.module("x", ["heartbeat_response", "heartbeat_response_part"])
    message_sizes._functions.cache_clear()
    assert "*, topics: Collection[tuple[str, int]], parts: Bytes" in text
    assert "def heartbeat_response_part(*, data: Bytes = 0) -> Bytes:" in text


@pytest.mark.parametrize("name", ["heartbeat_answer", "HeartbeatAnswer", "fetch_request_part"])
def test_what_is_called_and_is_no_message_of_kafkas_is_refused(name):
    with pytest.raises(ValueError, match="no message of Kafka's"):
        message_sizes.module("x", [name])


def test_what_a_module_calls_is_read_from_it():
    source = "def f(self):\n    return sizes.a_request(x=sizes.b(1)) + other.c + sizes.a_request()"
    assert message_sizes.called(source) == ["a_request", "b"]
