"""Failures by release: what the sources say, what a version chooses, and what a run of it does.

When a failure began and which release mended it is written down here from its issue or KIP, and
from the tags of apache/kafka that contain the commit. A release is the first one of its line:
KAFKA-14704 is mended in 3.4.1 and 3.5.0, so it happens in "3.4".

Two are not run, as their files were written for the gate of KAFKA-15583 (3.7): B7 needs a leader
that is alone in its ISR and keeps its high watermark, and A12 writes while followers are away.
"""

from dataclasses import dataclass

import pytest
import yaml

from sim.scenario import tiered
from sim.scenario.behaviours.registry import resolve
from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.text.quantities import parse_duration
from tests.scenarios.run_kit import CATALOGUE
from tools.catalogue_entries import entries

RELEASES = ("0.11", "1.1", "2.3", "2.8", "3.3", "3.6", "3.9", "4.0", "4.1", "4.3")


@dataclass(frozen=True)
class Fact:
    """Releases in which an entry of the catalogue happens, and where that is written."""

    entry: str
    begun: str | None
    """The first release; ``None``: none that may be named here."""
    fixed: str | None
    """The first release without it; ``None``: all have it."""
    source: str
    positions: dict[str, str]
    """What the failure is, as positions of behaviours."""

    def happens(self, version):
        if self.begun is None or not is_since(version, self.begun):
            return False
        return self.fixed is None or not is_since(version, self.fixed)


FIRST = VERSIONS[0]
FACTS = (
    Fact("A8", FIRST, "3.7", "KAFKA-15583, in 3.7.0", {"high_watermark.gate": "none"}),
    Fact("A12", FIRST, "2.1", "KAFKA-7152, in 2.1.0", {"isr.caught_up": "fetched"}),
    Fact("B1", FIRST, "4.1", "KIP-966, on in new clusters since 4.1", {"recovery": "isr"}),
    Fact("B3", FIRST, "0.11", "KAFKA-3919; KIP-101, in 0.11.0.0", {"truncation": "hw"}),
    Fact("B4", FIRST, "0.11", "KIP-101, in 0.11.0.0", {"truncation": "hw"}),
    Fact("B5", FIRST, "0.11", "KIP-101, in 0.11.0.0", {"truncation": "hw"}),
    Fact("B6", "0.11", "2.0", "KAFKA-6361 (KIP-279), in 2.0.0", {"truncation": "kip101"}),
    Fact("B7", FIRST, "2.1", "KAFKA-7128, in 2.0.1 and 2.1.0", {"isr_expand": "reach_hw"}),
    Fact("B8", FIRST, "4.1", "KAFKA-15495; KIP-966, as B1", {"recovery": "isr"}),
    Fact("B9", None, None, "KAFKA-2143, in 0.9", {"follower.out_of_range": "restart"}),
    Fact(
        "B10",
        FIRST,
        "0.11",
        "KAFKA-4039; KIP-101, by which followers truncate before they fetch, in 0.11.0.0",
        {"truncation": "hw", "follower.out_of_range": "halt"},
    ),
    Fact("B11", FIRST, "3.1", "KAFKA-13194, in 3.1.0", {"cleaner.bound_by_hw": "off"}),
    Fact(
        "B12",
        "2.7",
        "3.5",
        "KAFKA-14704, in 3.4.1 and 3.5.0; KAFKA-10435, in 2.7.0, brought diverging epochs",
        {"follower.diverging": "adopt_watermark"},
    ),
    Fact("C1", FIRST, "1.1", "KAFKA-2729; KAFKA-5642, in 1.1.0", {"zk.session_end": "resume"}),
    Fact("C3", FIRST, "0.11", "KAFKA-4447, in 0.10.2.0", {"zk.resignation": "stale"}),
    Fact("C4", FIRST, "2.1", "KAFKA-6082, in 2.1.0", {"zk.controller_epoch_fencing": "off"}),
    Fact("C5", FIRST, "2.2", "KAFKA-7235 (KIP-380), in 2.2.0", {"zk.broker_epoch": "off"}),
    Fact("C6", FIRST, "3.7", "KAFKA-15489, in 3.7.0", {"kraft.check_quorum": "off"}),
    Fact(
        "C8",
        "2.8",
        "3.3",
        "KAFKA-13858, in 3.3.0; of KRaft, in 2.8.0",
        {"shutdown.metadata": "ignored"},
    ),
    Fact("C9", FIRST, "1.1", "KAFKA-5642, in 1.1.0", {"zk.batching": "off"}),
    Fact("C11", FIRST, "3.7", "KIP-951, in 3.7.0", {"client.leader_hints": "off"}),
    Fact("C12", FIRST, "2.2", "KAFKA-7738 (KIP-320), in 2.2.0", {"client.metadata": "last"}),
    Fact("C13", FIRST, "2.5", "KAFKA-9307, in 2.4.1 and 2.5.0", {"transaction.reload": "refuse"}),
    Fact("C14", "4.0", None, "KAFKA-20634, of June 2026", {"group.unload": "late"}),
    Fact("C17", FIRST, "4.1", "KIP-966, as B1", {"recovery": "isr"}),
    Fact("D1", None, None, "KIP-36, in 0.10.0.0", {"placement": "plain"}),
    Fact("D6", FIRST, "1.0", "KAFKA-5634, in 0.11.0.1 and 1.0.0", {"retention.bound_by_hw": "off"}),
    Fact("D7", FIRST, "3.1", "KIP-534, in 3.1.0", {"cleaner.delete_horizon": "segment_mtime"}),
    Fact("D8", FIRST, "2.1", "KAFKA-7215 (KIP-346), in 2.1.0", {"cleaner.errors": "thread"}),
    Fact("E1", FIRST, "2.3", "KAFKA-7747, in 2.3.0", {"client.truncation_detection": "none"}),
    Fact("E2", FIRST, "2.3", "KIP-320, in 2.3.0", {"client.committed_epoch": "none"}),
    Fact("E4", FIRST, "2.1", "KAFKA-4682 (KIP-211), in 2.1.0", {"offsets.expiry": "per_offset"}),
    Fact("E7", "2.2", "2.5", "KAFKA-9752, in 2.5.0", {"group.missing_sync": "new_members_stay"}),
    Fact(
        "E7",
        "2.7",
        "3.0",
        "KAFKA-12890, in 2.8.1 and 3.0.0; since KAFKA-10134, in 2.7.0",
        {"group.missing_sync": "heartbeats"},
    ),
    Fact("E8", FIRST, "2.5", "KIP-447, in 2.5.0", {"transaction.offsets": "unfenced"}),
    Fact(
        "E9",
        FIRST,
        "3.5",
        "KAFKA-12468, in 3.4.1 and 3.5.0",
        {"mirror.translation": "extrapolated"},
    ),
    Fact("E10", "0.11", "2.5", "KAFKA-9807, in 2.5.0", {"fetch.stable_bound": "read_twice"}),
    Fact("F3", FIRST, "2.4", "KAFKA-7190, in 2.4.0", {"producer.state": "with_records"}),
    Fact(
        "F4", FIRST, "3.6", "KAFKA-14402 (KIP-890), in 3.6.0", {"transaction.verification": "off"}
    ),
    Fact(
        "F5", FIRST, "3.6", "KAFKA-14402 (KIP-890), in 3.6.0", {"transaction.verification": "off"}
    ),
    Fact("F6", FIRST, "2.5", "KAFKA-9144, in 2.4.1 and 2.5.0", {"producer.expiry": "data"}),
    Fact("F7", FIRST, "2.6", "KAFKA-9666, in 2.6.0", {"transaction.fence": "each_attempt"}),
    Fact(
        "F8",
        None,
        None,
        "KAFKA-10080 and the cause, KAFKA-9777: both first in 2.6.0",
        {"transaction.completion": "twice"},
    ),
    Fact("G1", "3.6", "3.9", "KAFKA-17062, in 3.9.0", {"tiered.failed_copies": "counted"}),
    Fact("G2", "3.6", "3.8", "KAFKA-15776, KIP-1018, in 3.8.0", {"tiered.fetch_wait": "consumer"}),
    Fact("G3", "3.6", "3.8", "KAFKA-16105, in 3.8.0", {"tiered.metadata_replay": "passed_over"}),
)

SETTINGS = (
    "A1 A2 A3 A4 A5 A6 A7 A9 A10 A11 B2 C2 C7 C10 C15 C16 D2 D3 D4 D5 D9 D10 D11 D12 E3 E5 E6"
)
NO_RELEASE = (*SETTINGS.split(), "F1", "F2", "F9", "G4")
"""What settings, hardware, the control plane or a client's own code decide, and no behaviour."""


def test_every_entry_has_its_releases_or_is_none_of_a_release():
    named = [fact.entry for fact in FACTS]
    assert sorted({*named, *NO_RELEASE}) == sorted(entry.number for entry in entries())
    assert not {*named} & {*NO_RELEASE}
    for fact in FACTS:
        assert any(word in fact.source for word in ("KAFKA-", "KIP-")), fact.entry


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.entry)
def test_a_release_has_the_failures_that_its_sources_say(fact, version):
    positions = resolve({}, version, preempted=True)
    may = not fact.entry.startswith("G") or is_since(version, tiered.FIRST_VERSION)
    has = may and all(positions[name] == choice for name, choice in fact.positions.items())
    assert has is fact.happens(version), fact.source


# -- what happens, in a run -----------------------------------------------------------------------

RUNS = (
    ("b01-last-replica-standing", "4.0", "4.1"),
    ("b04-kip101-hw-truncation-then-election", "0.10", "0.11"),
    ("b05-kip101-divergence-after-hard-failures", "0.10", "0.11"),
    ("b06-kip279-fast-failover-divergence", "1.1", "2.3"),
    ("b08-sole-isr-member-returns-with-empty-disk", "4.0", "4.1"),
    ("b10-shutdown-on-forbidden-truncation", "0.10", "0.11"),
    # It elects a leader by request, of which 2.8 knows none with KRaft.
    ("b11-cleaner-passes-high-watermark", "3.0", "3.3"),
    ("b12-uncommitted-data-served-by-demoted-leader", "3.3", "3.6"),
    ("c01-zk-cached-version-zombie", "0.11", "2.3"),
    ("c04-stale-controller-writes-zk", "0.11", "2.3"),
    ("c05-fast-bounce-stale-control-requests", "1.1", "2.3"),
    ("c06-kraft-isolated-controller-stays-leader", "3.6", "3.9"),
    ("c08-fenced-broker-rejoins-isr", "2.8", "3.3"),
    ("c12-stale-metadata-spurious-offset-reset", "1.1", "2.3"),
    ("c14-offset-commit-acked-then-dropped", "4.1", "3.9"),
    ("c17-isr-shrunk-then-dir-failure", "4.0", "4.1"),
    ("d06-retention-past-high-watermark", "0.11", "1.1"),
    ("d07-tombstone-removed-before-slow-reader", "2.8", "3.3"),
    ("e01-consumer-skips-over-unclean-truncation", "1.1", "2.3"),
    ("e02-committed-offset-without-epoch", "1.1", "2.3"),
    ("e04-offsets-expire-while-consumer-alive", "1.1", "2.3"),
    ("e07-group-stuck-completing-rebalance", "2.3", "3.3"),
    ("e08-zombie-consumer-commits-after-revocation", "2.3", "2.8"),
    ("e09-mirror-failover-offset-translation", "3.3", "3.6"),
    ("e10-read-past-lso-race", "2.3", "2.8"),
    ("f03-unknown-producer-id-after-retention", "2.3", "2.8"),
    ("f04-hanging-transaction-late-produce", "3.3", "3.6"),
    ("f05-hanging-transaction-client-forgets-add-partition", "3.3", "3.6"),
    ("f06-producer-state-expires-too-early", "2.4", "2.8"),
)
"""A file of the catalogue, a release in which it happens, and one in which it does not."""

OF_OTHERS = ("client.truncation_detection", "client.add_partitions")
"""Behaviours of clients of another make, which no release of Kafka chooses."""

EXACTLY_ONCE = {"2.3": "exactly_once", "2.8": "exactly_once_beta"}
"""The word of Streams for what is exactly_once_v2 from 3.0 on (KIP-447, KIP-732)."""


def unclean_off(plain):
    """The default from 0.11 on (KIP-106)."""
    plain["cluster"]["config"]["unclean.leader.election.enable"] = False


def streams_words(plain):
    config = plain["processors"][0]["config"]
    config["processing.guarantee"] = EXACTLY_ONCE[plain["cluster"]["kafka"]]


def preempted(plain):
    plain["cluster"]["cpu"] = {"preempted": {"p50": "2ms", "p99": "20ms"}}


def first_retention_at_30s(plain):
    """Before log.initial.task.delay.ms (KAFKA-16431, 3.8) the first look came after 30 s."""
    if not is_since(plain["cluster"]["kafka"], "3.8"):
        del plain["cluster"]["config"]["log.initial.task.delay.ms"]
        later(plain, 27)


def idempotent_retention_at_30s(plain):
    """Idempotence is the default from 3.0 on (KIP-679)."""
    plain["producers"][0]["config"] |= {"enable.idempotence": True, "acks": "all", "retries": 1000}
    first_retention_at_30s(plain)


def one_expiry(plain):
    """Before 3.4 (KAFKA-14097) the transactional ids' expiration counted, looked at each 10 min."""
    config = plain["cluster"]["config"]
    del config["producer.id.expiration.check.interval.ms"]
    config["transactional.id.expiration.ms"] = config.pop("producer.id.expiration.ms")
    later(plain, 561)


def later(plain, seconds):
    """All but the start of the cluster, and what has no start of its own, so much later."""
    loads = [load for load in plain["producers"] if load.get("start", "0s") != "0s"]
    for one, keys in (
        *((load, ("start", "stop")) for load in loads),
        *((fault, ("at",)) for fault in plain["faults"]),
        (plain["run"], ("for",)),
    ):
        for key in keys:
            one[key] = f"{parse_duration(one[key]) // 1000 + seconds * 1000}ms"


ADAPTED = {
    "b10": unclean_off,
    "d06": first_retention_at_30s,
    "e08": streams_words,
    "e10": preempted,
    "f03": idempotent_retention_at_30s,
    "f06": one_expiry,
}
"""Entries that lean on a default or a setting of later releases, and what they are without it."""


def of_release(name, version, directory):
    """Run a file of the catalogue as that release would have it, whatever behaviours it names."""
    plain = yaml.safe_load(CATALOGUE[name].read_text())
    given = plain.pop("behaviours", {})
    plain["behaviours"] = {key: given[key] for key in OF_OTHERS if key in given}
    plain["cluster"]["kafka"] = version
    ADAPTED.get(name[:3], lambda _: None)(plain)
    return run(load_text(yaml.safe_dump(plain)), out=directory / version)


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "had", "fixed"), RUNS, ids=lambda value: value)
def test_a_release_does_what_its_sources_say(entry, had, fixed, tmp_path):
    facts = [fact for fact in FACTS if fact.entry == f"{entry[0].upper()}{int(entry[1:3])}"]
    assert any(fact.happens(had) for fact in facts)
    assert not any(fact.happens(fixed) for fact in facts)
    assert of_release(f"{entry}-historic", had, tmp_path).held
    assert of_release(f"{entry}-fixed", fixed, tmp_path).held
