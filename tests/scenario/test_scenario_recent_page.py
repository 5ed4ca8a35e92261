"""The page of what 4.2 and 4.3 changed has a verdict on each line of the difference."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "kafka-4.2-4.3.md"
STEPS = (("4.1", "4.2"), ("4.2", "4.3"))
VERDICTS = ("done", "no difference", "refused")
ROW = re.compile(r"\| (4\.\d) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \| (.+) \|")


def settings():
    """Release, name, ConfigDefs and change of each setting that is not as it was."""
    of = {}
    for new, name, definitions, changed in changes():
        of.setdefault((new, name, changed), []).extend(definitions)
    return [(new, name, owners(sorted(them)), changed) for (new, name, changed), them in of.items()]


def changes():
    text = (files("sim.scenario.settings") / "data" / "kafka_settings.jsonl").read_text()
    head, *rows = map(json.loads, text.splitlines())
    order = list(head["releases"])
    for row in rows:
        for old, new in STEPS:
            before, after = (facts_at(row, release, order) for release in (old, new))
            if before != after:
                yield new, row["name"], row["of"], change(before, after)


def owners(definitions):
    few = ", ".join(definitions[:3])
    return few if len(definitions) < 4 else f"{few} and {len(definitions) - 3} more"


def facts_at(row, release, order):
    place, last = order.index(release), order.index(row.get("last", order[-1]))
    if not order.index(row["since"]) <= place <= last:
        return None
    found = row
    for since, facts in row.get("then", {}).items():
        if order.index(since) <= place:
            found = facts
    keys = ("type", "default", "valid", "importance")
    return {key: found.get(key, "none" if key == "default" else "") for key in keys}


def change(before, after):
    if before is None:
        return f"new: {after['type']}, default {said(after['default'])}"
    if after is None:
        return "removed"
    changed = [key for key in before if before[key] != after[key]]
    if "default" in changed:
        return f"default {said(before['default'])} → {said(after['default'])}"
    sides = ((key, said(before[key], "any"), said(after[key], "any")) for key in changed)
    return ", ".join(f"{key} {old} → {new}" for key, old, new in sides)


def said(text, empty="empty"):
    if text is None:
        return "null"
    return (text if len(text) < 40 else f"{text[:20]}…").replace("|", "") or empty


def messages():
    """Release, name, kind and change of each message whose versions or fields are others."""
    text = (files("sim.wire") / "data" / "kafka_messages.jsonl").read_text()
    head, *rows = map(json.loads, text.splitlines())
    order = list(head["releases"])
    known = {}
    for row in rows:
        for span, versions in row["in"].items():
            first, _, last = span.partition("-")
            for release in order[order.index(first) : order.index(last or first) + 1]:
                unstable = release in row.get("unstable", ())
                known.setdefault((row["name"], row["of"]), {})[release] = (
                    versions, unstable, row["fields"],
                )  # fmt: skip
    for (name, kind), at in known.items():
        for old, new in STEPS:
            before, after = at.get(old), at.get(new)
            if before != after:
                yield new, name, kind, message_change(before, after)


def message_change(before, after):
    if before is None:
        return f"new: {after[0]}"
    if after is None:
        return "removed"
    words = []
    if before[0] != after[0]:
        words.append(f"versions {before[0]} → {after[0]}")
    if before[1] != after[1]:
        words.append("its newest version is stable")
    if before[2] != after[2]:
        fresh = [
            field.partition(":")[0]
            for name, fields in after[2].items()
            for field in fields.split()
            if field not in before[2].get(name, "").split()
        ]
        words.append(f"fields {', '.join(fresh)}")
    return "; ".join(words)


def lines():
    return [*settings(), *messages()]


def rows_of(text):
    return {match[:4]: match[4] for match in ROW.findall(text)}


def missing(text, expected):
    found = rows_of(text)
    return [line for line in expected if line not in found]


def test_each_line_of_the_difference_has_a_verdict():
    text, expected = PAGE.read_text(encoding="utf-8"), lines()
    assert missing(text, expected) == []
    assert set(rows_of(text)) == set(expected), "the page speaks of what is no difference"


@pytest.mark.parametrize("line", lines(), ids=lambda line: f"{line[1]} in {line[0]}")
def test_a_verdict_says_what_was_done_or_why_nothing(line):
    verdict = rows_of(PAGE.read_text(encoding="utf-8")).get(line, "")
    word, _, reason = verdict.partition(": ")
    assert word in VERDICTS
    assert len(reason) > 10


def test_a_new_line_in_the_data_without_a_verdict_is_found():
    planted = ("4.3", "group.new.thing", "broker", "new: int, default 1")
    assert missing(PAGE.read_text(encoding="utf-8"), [*lines(), planted]) == [planted]
