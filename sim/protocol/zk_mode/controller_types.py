"""Types of the controller of ZooKeeper mode: settings, and notes for its process.

Source: ``kafka.controller.KafkaController`` (0.10 to 3.9).
"""

from dataclasses import dataclass

from sim.units import SECOND, Micros

FIRST_REBALANCE_US: Micros = 5 * SECOND
"""Delay of a new controller's first preferred-leader check; a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """This broker is the controller of the epoch, without any state yet. A note for its process."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ControllerLoaded:
    """The new controller has read so many partitions. A note for its process."""

    partitions: int


@dataclass(frozen=True, slots=True)
class ControllerResigned:
    """This broker is no longer the controller. A note for its process."""

    epoch: int


@dataclass(frozen=True, slots=True)
class StatesLogged:
    """The controller has written the states of so many partitions to its log."""

    partitions: int


class ControllerMoved(Exception):  # noqa: N818 - Kafka's ControllerMovedException
    """Another controller has been elected: a conditional write has failed."""


@dataclass(frozen=True, slots=True)
class ZkControllerConfig:
    """Settings, with Kafka's defaults, and historic behaviour."""

    unclean: bool = False
    """``unclean.leader.election.enable``."""
    auto_leader_rebalance: bool = True
    """``auto.leader.rebalance.enable``."""
    preferred_interval_us: Micros = 300 * SECOND
    """``leader.imbalance.check.interval.seconds``."""
    imbalance_percent: int = 10
    """``leader.imbalance.per.broker.percentage``."""
    fencing: bool = True
    """Writes are conditional on the controller's epoch (KAFKA-6082, 2.1)."""
    broker_epochs: bool = True
    """Requests name the broker's process, not only its number (KIP-380, 2.2)."""
    batched: bool = True
    """Partitions of one event are read and written together, and sent together (1.1)."""
    checks_eligibility: bool = True
    """Only live brokers that do not stop are taken into an ISR (KIP-841, 3.3)."""
    rack_aware: bool = True
    """Replicas of new topics are spread over racks, if every broker has one (KIP-36)."""
    logs_every_state: bool = False
    """Each election logs the states of all partitions (before the fix of KAFKA-6116)."""
    is_administered: bool = False
    """True if an administrator may change topics or settings: the nodes of such requests are read
    and watched. They are always empty otherwise."""
    leaders_write_isr: bool = False
    """Leaders write their ISRs to ZooKeeper, where the controller watches those that matter to it
    (before 2.7)."""
    several_directories: bool = False
    """True if brokers have several log directories: their announcements are read and watched."""
    deletes_topics: bool = True
    """``delete.topic.enable``, at its default: off before 1.0."""
    cleans_up: bool = True
    """A former controller drops its state when it resigns (KAFKA-4447)."""
