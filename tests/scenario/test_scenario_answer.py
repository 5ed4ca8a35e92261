"""The three numbers of a run, from a verdict, in words and colours."""

import pytest

from sim.levels import level_of, rank
from sim.scenario.run.answer import answer, lines
from sim.units import MS, SECOND

FAST = {"p50": 2 * MS, "p99": 9 * MS}


def verdict(
    lost=0, acked=1000, partitions=(), offline=(), windows=(), faults=(), normal=FAST, ended=()
):
    return {
        "consumer_errors": {"consumers": len(ended), "ended": list(ended)},
        "end_us": 100 * SECOND,
        "records": {"lost_acked": lost, "acked": acked},
        "availability": {"partitions": dict(partitions), "offline": dict(offline)},
        "windows": {"normal": normal, "faults": list(windows)},
        "faults": list(faults),
    }


def gap(kind, length, since=20 * SECOND, down=None):
    return {
        f"{kind}_us": length, f"{kind}_from_us": since,
        f"{kind}_down_us": length if down is None else down,
    }  # fmt: skip


def window(fault=0, p99=9 * MS, down=0):
    return {"fault": fault, "from_us": SECOND, "to_us": 9 * SECOND, "down_us": down,
            "produce": {"p50": MS, "p99": p99}}  # fmt: skip


def fault(number=0, took_effect=True, began=SECOND):
    return {"fault": number, "kind": "crash", "target": "broker-1", "effect": "killed broker-1",
            "took_effect": took_effect, "began_us": began}  # fmt: skip


def told(**numbers):
    return {name: (level, text) for name, level, text in lines(answer(verdict(**numbers)))}


def test_a_quiet_run_is_green_in_all_three():
    assert told() == {
        "lost": ("green", "0 of 1,000 acknowledged records"),
        "down": ("green", "never for 1 s or longer"),
        "slow": ("green", "p50 2 ms, p99 9 ms in normal times"),
    }


def test_one_lost_record_is_red_and_says_how():
    found = answer(verdict(lost=1), "record 5 of shop")
    assert found["lost"]["level"] == "red"
    assert found["lost"]["text"] == "1 of 1,000 acknowledged records; the first: record 5 of shop"


def test_where_nothing_was_acknowledged_nothing_is_green():
    numbers = told(acked=0, normal={})
    assert numbers["lost"] == ("amber", "nothing was acknowledged")
    assert numbers["slow"] == ("amber", "nothing was acknowledged")


def test_of_each_kind_of_outage_the_worst_partition_is_named_with_its_share_of_the_run():
    found = told(
        partitions={
            "orders-0": gap("produce", 2 * SECOND) | gap("fetch", 200 * MS, down=0),
            "orders-1": gap("produce", 8 * SECOND, down=12 * SECOND),
        },
        offline={"orders-1": {"max_us": 7 * SECOND, "from_us": 0, "total_us": 7 * SECOND}},
    )
    assert found["down"] == (
        "amber",
        (
            "produce 8 s (orders-1, from 20 s; 12% of the run), "
            "no leader 7 s (orders-1, from 0 s; 7% of the run)"
        ),
    )


def ended(group, *consumers, error="GROUP_ID_NOT_FOUND"):
    return {"group": group, "error": error, "consumers": list(consumers), "from_us": 12 * SECOND}


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (
            ended("billing", "billing-1"),
            "consumer billing-1 of group billing ended at 12 s: poll() raised GROUP_ID_NOT_FOUND",
        ),
        (
            ended("", "reader", error="OFFSET_OUT_OF_RANGE"),
            "consumer reader ended at 12 s: poll() raised OFFSET_OUT_OF_RANGE",
        ),
        (
            ended("g", "a", "b", "c"),
            "consumers a, b, c of group g ended from 12 s on: poll() raised GROUP_ID_NOT_FOUND",
        ),
        (
            ended("g", "a", "b", "c", "d", "e"),
            (
                "consumers a, b, c and 2 more of group g ended from 12 s on: "
                "poll() raised GROUP_ID_NOT_FOUND"
            ),
        ),
    ],
)
def test_consumers_that_ended_with_an_error_are_named_and_the_run_is_not_green(each, words):
    assert told(ended=[each])["down"] == ("amber", f"never for 1 s or longer, {words}")


def test_consumers_that_ended_make_no_outage_shorter_nor_less_red():
    long = {"orders-0": gap("fetch", 40 * SECOND)}
    level, text = told(ended=[ended("g", "a")], partitions=long)["down"]
    assert level == "red"
    assert text.startswith("consume 40 s (orders-0, from 20 s; 40% of the run), consumer a of")


@pytest.mark.parametrize(
    ("length", "level"),
    [(0, "green"), (SECOND - 1, "green"), (SECOND, "amber"), (30 * SECOND - 1, "amber"),
     (30 * SECOND, "red")],
)  # fmt: skip
def test_a_second_is_amber_and_the_request_timeout_is_red(length, level):
    assert level_of(length) == level
    found = told(partitions={"orders-0": gap("fetch", length)})
    assert found["down"][0] == level


def test_the_slowest_window_decides_how_slow_it_got():
    faults = [fault(0) | {"kind": "pause"}, fault(7)]  # a line with mtbf has the number between
    found = told(windows=[window(0), window(7, p99=2 * SECOND)], faults=faults)
    assert found["slow"] == (
        "amber",
        "p50 2 ms, p99 9 ms in normal times, p50 1 ms, p99 2 s within the worst fault (crash)",
    )


def test_each_fault_has_a_line_with_what_it_did_and_what_it_cost():
    found = answer(
        verdict(
            windows=[window(0, down=31 * SECOND)],
            faults=[fault(0), fault(1, took_effect=False), fault(2, began=None)],
        )
    )
    assert [(line["level"], line["text"]) for line in found["faults"]] == [
        ("red", "1 s crash broker-1: killed broker-1; until 9 s down 31 s, p50 1 ms, p99 9 ms"),
        ("red", "1 s crash broker-1: killed broker-1"),
        ("green", "never crash broker-1: killed broker-1"),
    ]


FORMING = {
    "first_us": 6 * SECOND, "later_us": 2 * SECOND, "later_from_us": 9 * SECOND,
    "later_down_us": 2 * SECOND,
}  # fmt: skip


def formed(began):
    read = verdict(
        partitions={"orders-0": gap("fetch", 6 * SECOND, since=0)},
        faults=[fault(began=began)] if began else [],
    )
    read["availability"]["started"] = {"orders-0": FORMING}
    return answer(read)["down"]["text"]


def test_a_group_that_forms_is_no_outage_unless_a_fault_kept_it_from_forming():
    later = "consume 2 s (orders-0, from 9 s; 2% of the run)"
    assert formed(began=None) == later
    assert formed(began=7 * SECOND) == later
    assert formed(began=5 * SECOND) == "consume 6 s (orders-0, from 0 s; 6% of the run)"


def test_the_numbers_of_other_clusters_are_among_the_three():
    west = answer(verdict(lost=7, acked=900, faults=[fault()]))
    found = answer(verdict() | {"clusters": {"west": {"answer": west}}})
    assert found["lost"] == west["lost"] | {
        "text": ("0 of 1,000 acknowledged records; in west: 7 of 900 acknowledged records"),
        "parts": ["0 of 1,000 acknowledged records", "in west: 7 of 900 acknowledged records"],
        "acked": 1000,
        "sent": 1000,
    }
    idle = answer(verdict(acked=0, normal={}))
    alone = answer(verdict() | {"clusters": {"idle": {"answer": idle}}})
    assert (alone["lost"]["level"], alone["slow"]["level"]) == ("green", "green")
    both = answer(verdict(lost=2) | {"clusters": {"west": {"answer": west}}})
    assert (both["lost"]["level"], both["lost"]["size"]) == ("red", 9)
    assert found["down"]["level"] == "green"
    assert found["faults"][0]["text"].startswith("in west: 1 s crash broker-1: ")


def test_of_many_runs_a_colour_counts_before_a_number():
    assert max([("green", 900), ("amber", 0), ("green", 5)], key=lambda one: rank(*one)) == (
        "amber", 0,
    )  # fmt: skip


def test_each_number_alone_is_read_first():
    found = answer(verdict(lost=7, acked=900, faults=[fault()]))
    assert found["lost"]["number"] == "7"
    quiet = answer(verdict(acked=0))
    assert quiet["lost"]["number"] == "\N{EN DASH}", "nothing was there to be lost"
    for name in ("lost", "down", "slow"):
        assert found[name]["parts"]
        assert all(part in found[name]["text"] for part in found[name]["parts"])
