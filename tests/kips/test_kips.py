"""Each KIP that the simulator cites often has a file here, which says its rule and tests it."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

OFTEN = 12
"""How often a KIP is cited, in all of ``sim``, without a file here."""

ELSEWHERE: dict[int, str] = {
    227: "tests/dialogues/fetch-session-kip-227.txt",
    497: "tests/dialogues/isr-shrink.txt",
    595: "tests/dialogues/quorum-election-kip-996.txt",
    841: "tests/dialogues/fenced-broker.txt",
    996: "tests/dialogues/quorum-election-kip-996.txt",
}
"""Where others are tested, whose rule needs no file of its own."""


def cited(texts: Iterable[str]) -> Counter[int]:
    """How often each KIP is cited."""
    return Counter(int(number) for text in texts for number in re.findall(r"KIP-(\d+)", text))


def missing(citations: Counter[int], tested: Iterable[int]) -> list[int]:
    """KIPs that are cited often, and tested nowhere that has their name."""
    known = set(tested)
    return sorted(kip for kip, count in citations.items() if count > OFTEN and kip not in known)


def kip_files() -> dict[int, Path]:
    return {int(path.stem.rpartition("_")[2]): path for path in HERE.glob("test_kip_*.py")}


def test_each_kip_that_is_cited_often_has_a_file():
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "sim").rglob("*.py"))
    citations = cited(sources)
    assert citations[98] > OFTEN, "the sources were read"
    assert missing(citations, [*kip_files(), *ELSEWHERE]) == []


def test_a_kip_without_a_file_is_found():
    texts = ["KIP-7, KIP-8 and KIP-9\n", "KIP-7; KIP-8\n" * OFTEN]
    assert missing(cited(texts), [8]) == [7]


@pytest.mark.parametrize("kip", sorted(kip_files()))
def test_a_file_begins_with_the_rule_of_its_kip(kip: int):
    docstring = ast.get_docstring(ast.parse(kip_files()[kip].read_text(encoding="utf-8")))
    assert docstring is not None
    assert re.match(rf"KIP-{kip}(, part \d)?: ", docstring)
    assert len(docstring.splitlines()) >= 3, "a title, and the rule in a sentence or two"


@pytest.mark.parametrize(("kip", "place"), ELSEWHERE.items())
def test_what_is_tested_elsewhere_names_its_kip_there(kip: int, place: str):
    assert f"KIP-{kip}" in (ROOT / place).read_text(encoding="utf-8")
