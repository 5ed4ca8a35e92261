"""Pictures of the failure catalogue: there, small, current, and the same in each run."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from sim.scenario.loader import load
from sim.units import SECOND
from tools.catalogue_entries import CATALOGUE
from tools.site import facts, gallery, lanes
from tools.site.facts import facts_of
from tools.site.picture import PICTURES, draw, found_in, picture_of

FILES = sorted(CATALOGUE.glob("*.yaml"))
LARGEST = 30_000
ALL = 3_000_000
TENTH = [path for place, path in enumerate(FILES) if place % 10 == 2]
"""Runs that the slow tests make again; those of the others are of the same code."""


def run_facts(**more):
    """A minute of a cluster of three brokers in which nothing happens, and what ``more`` says."""
    return {
        "scenario": "small",
        "digest": "0" * 64,
        "answer": {
            "lost": "3 of 9 acknowledged records; the first: ...",
            "down": "produce 8.658 s (x)",
        },
        "expectations": [["lost_acked", "at least 1", "3"], ["lag.max", "< 3", "2"]],
        "seed": 1,
        "end_us": 60 * SECOND,
        "faults": [],
        "outages": {},
        "servers": [[-SECOND, f"broker-{n}", "running"] for n in (1, 2, 3)],
        "controllers": [[-SECOND, "controller-1", 1, True]],
        "partitions": [[-SECOND, "orders-0", 1, 3, 3, False]],
        "min_in_sync": {"orders-0": 2},
        "truncations": [],
        "groups": [],
        "acked": [],
        "read": [],
    } | more


def spans(found, track):
    [lane] = next(each for each in found if each.name == track).lanes
    return [(s.from_us // SECOND, s.to_us // SECOND, s.state) for s in lane.spans]


def test_every_scenario_of_the_catalogue_has_its_picture_and_no_other_is_there():
    assert {picture_of(path) for path in FILES} == set(PICTURES.glob("*.svg"))


def test_pictures_are_small_and_fetch_nothing():
    sizes = []
    for path in sorted(PICTURES.glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        sizes.append(len(text.encode()))
        ET.fromstring(text)
        assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject", text), path.name
    assert max(sizes) < LARGEST
    assert sum(sizes) < ALL


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_picture_is_of_the_scenario_as_it_is_now(path: Path):
    digest = load(path).digest[:12]
    (word, of), *found = found_in(picture_of(path))
    assert (word, of) == ("scenario", digest), "run: make gallery"
    names = [line.name for line in load(path).expect]
    assert [name for name, _ in found] == ["lost", "down", *names]


@pytest.mark.slow
@pytest.mark.parametrize("path", TENTH, ids=lambda path: path.stem)
def test_a_run_draws_the_picture_that_is_there(path: Path):
    assert draw(facts_of(path)) == picture_of(path).read_text(encoding="utf-8"), "run: make gallery"


def test_a_partition_is_in_the_states_that_the_controller_committed():
    rows = [
        [-SECOND, "orders-0", 1, 3, 3, False],
        [10 * SECOND, "orders-0", 1, 2, 3, False],
        [20 * SECOND, "orders-0", 1, 1, 3, False],
        [30 * SECOND, "orders-0", -1, 1, 3, False],
        [40 * SECOND, "orders-0", 2, 3, 3, True],
    ]
    found = lanes.tracks(run_facts(partitions=rows))
    assert spans(found, "partitions") == [
        (0, 10, "all in sync"), (10, 20, "some out of sync"), (20, 30, "below min.insync.replicas"),
        (30, 40, "no leader"), (40, 60, "all in sync"),
    ]  # fmt: skip
    [lane] = next(each for each in found if each.name == "partitions").lanes
    assert [span.label for span in lane.spans] == ["1", "", "", "", "2"]
    assert "elected unclean" in lane.spans[-1].words


def test_a_topic_that_is_deleted_has_no_state_any_more():
    rows = [[0, "orders-0", 1, 3, 3, False], [10 * SECOND, "orders-", None, 0, 0, False]]
    found = lanes.tracks(run_facts(partitions=rows))
    assert spans(found, "partitions") == [(0, 10, "all in sync")]


def test_only_servers_that_were_not_up_all_the_time_are_shown():
    rows = [
        *run_facts()["servers"],
        [10 * SECOND, "broker-2", "crashed"],
        [20 * SECOND, "broker-2", "started"],
        [21 * SECOND, "broker-2", "running"],
    ]
    found = lanes.tracks(run_facts(servers=rows))
    assert spans(found, "servers") == [
        (0, 10, "up"), (10, 20, "down"), (20, 21, "starting"), (21, 60, "up"),
    ]  # fmt: skip
    quiet = lanes.tracks(run_facts())
    assert [track.name for track in quiet] == ["partitions"]


def test_the_term_of_a_controller_ends_with_its_process():
    found = lanes.tracks(
        run_facts(
            controllers=[
                [-SECOND, "controller-1", 1, True],
                [15 * SECOND, "controller-2", 2, True],
                [16 * SECOND, "controller-1", 1, True],
            ],
            servers=[[10 * SECOND, "controller-1", "crashed"]],
        )
    )
    [lane] = next(each for each in found if each.name == "controller").lanes
    assert [(s.from_us // SECOND, s.label) for s in lane.spans] == [
        (0, "controller-1"), (10, ""), (15, "controller-2"),
    ]  # fmt: skip


def test_an_operation_is_an_instant_and_a_lasting_fault_lasts():
    common = {"target": "broker-1", "resolved": "broker-1", "began_us": 5 * SECOND, "effect": "x"}
    faults = [
        {"kind": "crash", "healed_us": 20 * SECOND} | common,
        {"kind": "crash", "healed_us": None} | common,
        {"kind": "restart", "healed_us": None} | common,
    ]
    found = lanes.tracks(run_facts(faults=faults))
    ends = [lane.spans[0].to_us // SECOND for lane in found[0].lanes]
    assert ends == [20, 60, 5]


def test_the_most_troubled_partitions_are_shown_and_the_others_counted():
    rows = [[0, f"orders-{n}", 1, 3 - (n > 3), 3, False] for n in range(12)]
    rows += [[30 * SECOND, "orders-11", -1, 1, 3, False]]
    [track] = lanes.tracks(run_facts(partitions=rows, min_in_sync={}))
    assert [lane.name for lane in track.lanes] == ["orders-4", "orders-5", "orders-6", "orders-11"]
    assert track.omitted == 4, "the quiet ones are not counted"


def test_names_of_a_scenario_are_escaped_in_a_picture():
    hostile = "</title><script>alert(1)</script>&"
    name = f"{hostile}-0"
    fault = {
        "kind": "crash", "target": hostile, "resolved": hostile, "began_us": 0,
        "healed_us": None, "effect": hostile,
    }  # fmt: skip
    text = draw(
        run_facts(
            scenario=hostile, faults=[fault], outages={name: [SECOND, 5 * SECOND]},
            partitions=[[0, name, 1, 2, 3, False]], truncations=[[9, name, "broker-1", 2, 1]],
            groups=[[n * SECOND, hostile, s, n, 1] for n, s in enumerate(["Dead", "Stable"] * 2)],
            acked=[5] * facts.BINS,
        )
    )  # fmt: skip
    ET.fromstring(text)
    assert "<script" not in text


def test_a_picture_says_what_its_run_found(tmp_path):
    picture = tmp_path / "small.svg"
    picture.write_text(draw(run_facts()))
    assert found_in(picture) == [
        ("scenario", "0" * 12), ("lost", "3 of 9 acknowledged records"), ("down", "produce 8.7 s"),
        ("lost_acked", "3"), ("lag.max", "2"),
    ]  # fmt: skip


def test_a_burst_does_not_flatten_all_other_counts():
    bins = [10] * facts.BINS
    bins[7] = 10_000
    text = draw(run_facts(acked=bins))
    assert "full height: 90 or more" in text


def test_facts_of_a_run_are_kept_under_its_code_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "CACHE", tmp_path)
    ran = []
    monkeypatch.setattr(facts, "facts_of", lambda path: ran.append(path) or {"scenario": path.stem})
    for code in ("one", "one", "two"):
        assert facts.cached_facts(FILES[0], code) == {"scenario": FILES[0].stem}
    assert len(ran) == 2, "another code runs again"


def test_only_pictures_that_moved_are_written_and_those_without_a_scenario_go(
    tmp_path, monkeypatch
):
    files, pictures = tmp_path / "files", tmp_path / "pictures"
    files.mkdir()
    (files / "a01-x.yaml").touch()
    (files / "a02-y.yaml").touch()
    monkeypatch.setattr(gallery, "CATALOGUE", files)
    monkeypatch.setattr(gallery, "PICTURES", pictures)
    monkeypatch.setattr(gallery, "picture_of", lambda path: pictures / f"{path.stem}.svg")
    monkeypatch.setattr(gallery, "cached_facts", lambda path, _: run_facts(scenario=path.stem))
    assert gallery.make_gallery(["a02-y"]) == 1
    (pictures / "b01-old.svg").touch()
    assert gallery.make_gallery() == 1
    assert sorted(path.stem for path in pictures.iterdir()) == ["a01-x", "a02-y"]
    assert gallery.make_gallery() == 0
