"""Partitioners of producers: Kafka's own classes, or a class that comes with the scenario."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from sim.errors import SimulationError
from sim.protocol.clients.producer.partitioner import (
    DefaultPartitioner,
    FormerDefaultPartitioner,
    MakePartitioner,
    OwnPartitioner,
    RecordPartitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.clients import ProducerSpec
from sim.scenario.settings import partitioners as names


def partitioner_of(spec: ProducerSpec, kafka: str) -> MakePartitioner | None:
    """Maker of a producer's partitioner; ``None`` for the built-in one, which transactions have.

    Raises:
        SimulationError: If the user's file or entry point cannot be run, or its class made.
    """
    given = spec.config.text("partitioner.class")
    if not given or spec.config.text("transactional.id"):
        return None
    again = names.asks_again(kafka)
    own = names.own_class(given)
    if own is not None:
        made = _class(own, spec.partitioner_source)
        return lambda _: OwnPartitioner(_instance(given, made), spec.topic, asks_again=again)
    offered = names.offered(given)
    if offered is not None:
        loaded = _loaded(offered)
        return lambda _: OwnPartitioner(_instance(given, loaded), spec.topic, asks_again=again)
    if given == names.ROUND_ROBIN:
        return lambda _: RoundRobinPartitioner(asks_again=again)
    if given == names.UNIFORM_STICKY:
        return lambda unit: UniformStickyPartitioner(unit, asks_again=again)
    if is_since(kafka, names.ASKS_AGAIN[0]):
        return lambda unit: DefaultPartitioner(unit, asks_again=again)
    return _former


def _former(unit: Callable[[], float]) -> RecordPartitioner:
    return FormerDefaultPartitioner(int(unit() * (1 << 31)), asks_again=False)


def _class(own: names.OwnClass, source: str) -> Any:  # noqa: ANN401 - a user's class
    module = ModuleType(own.file.removesuffix(".py"))
    try:
        exec(compile(source, own.file, "exec"), module.__dict__)  # noqa: S102 - named by the user
    except Exception as error:
        raise _failed(f"{own.file}:{own.name}", error) from error
    return getattr(module, own.name)


def _loaded(offered: names.Offered) -> Any:  # noqa: ANN401 - a user's class
    try:
        made = names.entry_of(offered).load()
    except Exception as error:
        raise _failed(offered.value, error) from error
    if not callable(getattr(made, "partition", None)):
        raise SimulationError(
            f"partitioner.class {offered.value}: {made!r} has no method partition; allowed: a "
            f"class with def partition(self, ...); mend the entry point of {offered.distribution}"
        )
    return made


def _instance(given: str, made: Any) -> Any:  # noqa: ANN401 - a user's class
    try:
        return made()
    except Exception as error:
        raise _failed(given, error) from error


def _failed(given: str, error: Exception) -> SimulationError:
    return SimulationError(
        f"partitioner.class {given}: {type(error).__name__}: {error}; "
        "a class that can be made without arguments; mend the file beside the scenario, or the "
        "distribution that offers it"
    )
