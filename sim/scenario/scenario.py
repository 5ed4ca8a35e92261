"""A scenario: what is claimed, what is built, what goes wrong, what must hold.

Frozen, with every default filled in. Made by :mod:`sim.scenario.loader`, from which runs are built.
"""

from dataclasses import dataclass

from sim.ids import TopicPartition
from sim.scenario.canonical.scenario import Parts, digest, to_yaml
from sim.scenario.model.parts import TopicSpec


@dataclass(frozen=True, slots=True)
class OffDefault:
    """One value of the scenario that differs from its default."""

    path: str
    """Dotted path, as in an error message."""
    value: str
    default: str


@dataclass(frozen=True, slots=True)
class Scenario(Parts):
    """A scenario that can be run."""

    name: str = "scenario"
    """Its file's name, without the ending."""
    off_default: tuple[OffDefault, ...] = ()
    """Every setting and quantity off its default, for the run card."""

    def as_yaml(self) -> str:
        """The scenario as run, every default filled in; loading it gives the same scenario."""
        return to_yaml(self)

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`as_yaml`, the seed left out."""
        return digest(self)

    def topic(self, name: str) -> TopicSpec:
        """The topic of that name.

        Raises:
            KeyError: If there is none; the loader has seen to it for every name in the scenario.
        """
        for topic in self.topics:
            if topic.name == name:
                return topic
        raise KeyError(name)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition of every topic, in the order of the file."""
        return tuple(
            TopicPartition(topic.name, number)
            for topic in self.topics
            for number in range(topic.partitions)
        )

    @property
    def producer_names(self) -> tuple[str, ...]:
        """Printed names of all producers; a producer's place is its producer index."""
        return tuple(name for producer in self.producers for name in producer.client_names)

    @property
    def consumer_names(self) -> tuple[str, ...]:
        """Printed names of all consumers."""
        return tuple(name for consumer in self.consumers for name in consumer.client_names)
