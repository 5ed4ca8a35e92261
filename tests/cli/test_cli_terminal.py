"""What the terminal says of a verdict."""

from sim.cli import terminal


def check(name, outcome):
    return {"name": name, "outcome": outcome}


def test_checks_that_met_nothing_are_not_counted_as_held_and_take_no_line_each():
    told = terminal.describe_checks(
        [check("a", "held"), check("b", "nothing to check"), check("c", "nothing to check"),
         check("d", "set aside"), check("e", "held")]
    )  # fmt: skip
    assert told == "2 held; 2 nothing to check; 1 set aside"


def test_where_every_check_held_nothing_is_named():
    assert terminal.describe_checks([check("a", "held")]) == "1 held"
    assert terminal.describe_checks([]) == "0 held"
