"""Conversations between servers, word for word: each file here is one, played by the machines."""

from pathlib import Path

import pytest

from tests.dialogues.script import Mismatch, play, play_text

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_conversation_goes_word_for_word_as_its_file_says(path: Path):
    play(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dialogue_begins_with_its_rule(path: Path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert len(first) > 40


# --- a dialogue that is not what happens fails, and says where ------------------------------------

TRUE = """\
# A record is committed when the ISR has it.
cluster  brokers=1,2
topic    orders replicas=1,2
broker-2 -> broker-1  Fetch session=new; orders-0 offset=0 leader_epoch=0
producer -> broker-1  Produce orders-0 acks=all records=1
broker-1 -> broker-2  FetchResponse session=1; orders-0 records=0@0 high_watermark=0
broker-2 -> broker-1  Fetch session=1/1; orders-0 offset=1 leader_epoch=0 last_epoch=0
broker-1 -> producer  ProduceResponse orders-0 base_offset=0
broker-1: high_watermark=1
"""


def changed(line: int, new: str | None) -> str:
    """The dialogue with another line, or without it."""
    lines = TRUE.splitlines()
    lines[line - 1 : line] = [] if new is None else [new]
    return "\n".join(lines)


def test_the_dialogue_that_defects_are_planted_in_is_true():
    play_text(TRUE, "true.txt")


@pytest.mark.parametrize(
    ("line", "new", "said", "why"),
    [
        (6, "broker-1 -> broker-2  FetchResponse session=1; orders-0 high_watermark=0",
         ":6: expected broker-1 -> broker-2", "records=0@0"),
        (8, "broker-1 -> producer  ProduceResponse orders-0 NOT_ENOUGH_REPLICAS",
         ":8: expected broker-1 -> producer", "base_offset=0"),
        (8, "broker-1 -> consumer  ProduceResponse orders-0 base_offset=0",
         ":8: expected broker-1 -> consumer", "to producer: ProduceResponse"),
        (9, "broker-1: high_watermark=2", ":9: expected broker-1", "high_watermark=1"),
        (9, "controller => brokers  PartitionChangeRecord orders-0 isr=1",
         ":9: expected for", "nothing"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_what_happens_fails_with_what_was_sent(line, new, said, why):
    with pytest.raises(Mismatch) as failure:
        play_text(changed(line, new), "planted.txt")
    assert f"planted.txt{said}" in str(failure.value)
    assert why in str(failure.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [(6, "planted.txt:6: expected broker-2 -> broker-1"), (7, "planted.txt:7: expected broker-1")],
)
def test_a_line_that_is_missing_fails_at_the_next_that_needs_it(line, said):
    with pytest.raises(Mismatch) as failure:
        play_text(changed(line, None), "planted.txt")
    assert str(failure.value).startswith(said)


def test_a_message_of_which_no_line_speaks_fails_with_the_line_that_caused_it():
    with pytest.raises(Mismatch) as failure:
        play_text(changed(8, None), "planted.txt")
    assert "no line speaks of" in str(failure.value)
    unexpected = "broker-1 -> producer  ProduceResponse orders-0 base_offset=0  (since line 7)"
    assert unexpected in str(failure.value)


def test_a_record_that_no_line_applies_fails():
    with pytest.raises(Mismatch, match=r"PartitionChangeRecord orders-0 isr=1; .* broker-2 fenced"):
        play_text(f"{TRUE}broker-2 stops\nafter 12 s\n", "planted.txt")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("broker-1 and broker-2 talk", "cannot read"),
        ("broker-1: color=red", "has no color"),
        ("producer -> broker-1  Sing orders-0", "cannot say Sing"),
        ("producer -> broker-1  Produce orders-0 records=1", "lacks 'acks'"),
        ("producer -> broker-1  Produce orders-0 acks=1 records=1 hurry=1", "is understood as"),
        (
            """\
producer -> broker-1  Produce orders-0 acks=1 records=1
broker-1 -> producer  ProduceResponse orders-0 base_offset=1
broker-2 stops
broker-1 -> broker-2  FetchResponse session=1; orders-0 records=1@0 high_watermark=1""",
            "broker-2 does not run",
        ),
        ("broker-2 stops\nbroker-2 -> broker-1  Fetch session=1/2", "expected broker-2"),
    ],
)
def test_a_line_that_says_nothing_of_the_kind_is_refused(more, why):
    with pytest.raises(Mismatch, match=why):
        play_text(f"{TRUE}{more}\n", "planted.txt")


def test_the_answers_of_one_connection_come_in_their_order():
    more = """\
producer -> broker-1  Produce orders-0 acks=1 records=1
producer -> broker-1  Produce orders-0 acks=1 records=1
broker-1 -> producer  ProduceResponse orders-0 base_offset=2
"""
    with pytest.raises(Mismatch, match="comes after"):
        play_text(TRUE + more, "planted.txt")
