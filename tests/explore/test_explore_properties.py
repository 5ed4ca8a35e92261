"""Each property is broken by a defect planted for it, and by no state of the same search without.

| property | holds | planted defect |
|---|---|---|
| log matching | no unclean election, no loss of power beyond ELR | KIP-101's answers |
| leader completeness | the same | KIP-279's unfenced questions |
| candidate completeness | the same | cuts at the high watermark |
| replication quorum superset | always | a leader that forgets whom it is adding |
| unclean exclusion | with ELR | a lossy restart that passes for a clean one |
| honest views | always | fetches without epochs |
| kept somewhere | fewer losses of power than min.insync.replicas | as many |
"""

import pytest

from sim.protocol.broker.replica import Replica
from sim.protocol.broker.truncation.divergence import Truncation
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.controller.partitions import leader_and_isr_updates
from tests.explore import world as worlds
from tests.explore.brokers import Brokers
from tests.explore.properties import PROPERTIES
from tests.explore.search import search
from tests.explore.world import Bounds, World


def broken_by(name, rule=None, **bounds):
    made = World(Brokers(rule or TRUNCATIONS["kip320"]), Bounds(**bounds))
    found = search(made, {name: PROPERTIES[name]})
    assert found.complete
    return found.broken.partition(":")[0]


JOINING = {"brokers": 3, "in_sync": (1, 2), "moves": 0}


def test_a_leader_that_forgets_whom_it_is_adding_has_too_small_a_maximal_isr(monkeypatch):
    name = "replication quorum superset"
    assert broken_by(name, **JOINING) == ""
    propose = Replica._propose

    def forgetful(replica, wanted, image):
        replica.maximal_in_sync = replica.in_sync
        return propose(replica, wanted, image)

    monkeypatch.setattr(Replica, "_propose", forgetful)
    assert broken_by(name, **JOINING) == name


LOSS = {"min_in_sync": 2, "moves": 0, "losses": 1, "restarts": 1, "elr": True}


def test_a_lossy_restart_that_passes_for_a_clean_one_stays_in_the_isr(monkeypatch):
    name = "unclean exclusion"
    assert broken_by(name, **LOSS) == ""

    def credulous(image, partitions, *, remove=-1, add=-1, unclean=-1):
        del remove, unclean
        return leader_and_isr_updates(image, partitions, add=add)

    monkeypatch.setattr(worlds, "leader_and_isr_updates", credulous)
    assert broken_by(name, **LOSS) == name


class Unfenced(Truncation):
    """Today's rule with the epochs left out of the fetches."""

    fences = False


def test_fetches_without_epochs_let_a_leader_count_what_followers_do_not_have():
    name, bounds = "honest views", {"records": 2, "moves": 2}
    assert broken_by(name, **bounds) == ""
    assert broken_by(name, Unfenced(), **bounds) == name


@pytest.mark.parametrize(
    ("name", "rule", "bounds"),
    [
        ("log matching", "kip101", {"records": 2, "moves": 2}),
        ("leader completeness", "kip279", {"records": 1, "moves": 3}),
        ("candidate completeness", "hw", {"records": 1, "moves": 2}),
    ],
)
def test_what_old_rules_break_todays_keeps(name, rule, bounds):
    assert broken_by(name, TRUNCATIONS[rule], **bounds) == name
    assert broken_by(name, **bounds) == ""


def test_as_many_losses_of_power_as_min_isr_leave_a_committed_record_nowhere():
    name = "kept somewhere"
    bounds = {"brokers": 3, "in_sync": (1, 2), "min_in_sync": 2, "moves": 0, "elr": True}
    assert broken_by(name, losses=1, **bounds) == ""
    assert broken_by(name, losses=2, **bounds) == name


def test_every_property_has_its_defect_here():
    tried = {
        "log matching", "leader completeness", "candidate completeness", "kept somewhere",
        "replication quorum superset", "unclean exclusion", "honest views",
    }  # fmt: skip
    assert tried == set(PROPERTIES)
