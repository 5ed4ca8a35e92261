"""Voters change, disks are lost, and no seed of many breaks a promise (KIP-853)."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.kraft.raft import Quorum
from tests.protocol.kraft.quorum_swarm import swarm


def test_no_seed_breaks_a_promise_while_voters_change_and_disks_are_lost():
    broken, saw = swarm(range(25), dynamic=True)
    assert broken == {}
    assert saw["Add NONE"] > 15
    assert saw["Rem NONE"] > 25
    assert saw["wiped"] > 25
    assert saw["elected"] > 40


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"snapshots": True}, {"spite": True}], ids=str)
def test_no_seed_of_many_breaks_a_promise_while_voters_change(how):
    broken, saw = swarm(range(1_000, 1_400), dynamic=True, **how)
    assert broken == {}
    assert saw["Add NONE"] > 50


class VotesForItsId(Quorum):
    """Gives a vote that was meant for the disk it had before."""

    def _serve_vote(self, token, request):
        super()._serve_vote(token, replace(request, voter_directory=""))


class ChangesTwice(Quorum):
    """Begins a change while another is uncommitted."""

    def _change_refusal(self):
        if self._leadership is None or self._leadership.high_watermark < 0:
            return super()._change_refusal()
        self._leadership.change = None
        return E.NONE


@pytest.mark.parametrize(
    ("machine", "spite", "seeds"),
    [(VotesForItsId, True, range(15)), (ChangesTwice, False, range(45, 60))],
)
def test_the_harness_finds_a_planted_defect_of_changing_voters(machine, spite, seeds):
    """The second one shows in few seeds: two changes must be under way when a leader dies."""
    broken, _ = swarm(seeds, machine=machine, dynamic=True, spite=spite)
    assert any("lacks committed" in found for found in broken.values())
