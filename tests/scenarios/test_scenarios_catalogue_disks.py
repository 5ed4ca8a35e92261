"""The failure catalogue, part D: what the expectations of its scenarios cannot ask."""

from itertools import pairwise

import pytest

from tests.scenarios.run_kit import S

pytestmark = pytest.mark.slow


@pytest.mark.xdist_group("catalogue-d03")
@pytest.mark.parametrize(("kind", "exits"), [("historic", 3), ("fixed", 0)])
def test_brokers_with_equal_disks_exit_one_after_the_other_and_again_when_started(
    shared, kind, exits
):
    rows = shared.ran(f"d03-disk-full-correlated-{kind}").rows("node_states", state="crashed")
    times = [row["t_us"] for row in rows if row["t_us"] > 0]
    before, after = [t for t in times if t < 36 * S], [t for t in times if t > 36 * S]
    assert len(before) == exits
    assert len(after) >= exits
    assert all(later - sooner < 300 * S for sooner, later in pairwise(times))
