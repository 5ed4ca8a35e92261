"""From the keys of a task to its parts: settings of Streams and of its two clients.

Source: ``StreamsConfig.{getMainConsumerConfigs,getProducerConfigs,…}``.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.apps import ProcessorModel, ProcessorSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.model.types import filled
from sim.scenario.releases.clients import client_release
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules.groups import GENERAL_SINCE, check_member
from sim.scenario.rules.rebalance import with_rebalance, with_streams_rebalance
from sim.scenario.settings import registry as settings
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.streams import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE_COMMIT_INTERVAL_MS,
    EXACTLY_ONCE_CONSUMER,
    consumer_defaults,
    producer_defaults,
)
from sim.scenario.settings.types import Scope
from sim.scenario.text.problems import Problem
from sim.units import Bytes

OUTPUT_SIZE_MIN: Final[Bytes] = 48
"""An output's value holds its own name and that of the record it was made from."""

_OWN: Final = "the task's own"
_CLIENTS: Final = ("consumer", "producer")

T = TypeVar("T")


def processor(
    model: ProcessorModel, cluster: ClusterSpec, output: TopicSpec, rebalance: str
) -> ProcessorSpec:
    """The tasks of checked keys.

    Args:
        model: The entry of ``processors``.
        cluster: Where they run.
        output: The topic of their outputs.
        rebalance: The behaviour ``rebalance``, if the file names it.

    Raises:
        Problem: With a path below the entry.
    """
    if model.record_size < OUTPUT_SIZE_MIN:
        raise Problem(
            ("record.size",),
            f"{model.record_size}B",
            f"at least {OUTPUT_SIZE_MIN}B, in which an output names itself and its input",
        )
    if output.name in model.topics:
        raise Problem(("output",), f"{output.name!r} is read by the same task", "another topic")
    if "compact" in output.config.words("cleanup.policy"):
        raise Problem(
            ("output",),
            f"{output.name!r} is compacted, and outputs have no keys",
            "a topic with cleanup.policy: delete",
        )
    own, consumer, producer = split_config(model.config)
    release = client_release(model.kafka, cluster)
    config = under("", lambda: settings.resolve("streams", own, version=release))
    exactly_once = config.text("processing.guarantee") != AT_LEAST_ONCE
    if exactly_once and model.commits != "after":
        raise Problem(
            ("commits",),
            f"{model.commits} with processing.guarantee {config.text('processing.guarantee')}",
            "after",
            "leave it out, or take at_least_once",
        )
    if exactly_once and "commit.interval.ms" not in own:
        config = config.changed({"commit.interval.ms": EXACTLY_ONCE_COMMIT_INTERVAL_MS})
    automatic = model.commits == "auto"
    if automatic and "commit.interval.ms" in own:
        raise Problem(
            ("config", "commit.interval.ms"),
            "commit.interval.ms with commits: auto",
            "consumer.auto.commit.interval.ms",
        )
    _check_own(consumer, producer, exactly_once=exactly_once, automatic=automatic)
    consumer = with_rebalance(consumer, rebalance, model.name)
    protocol = consumer.get("group.protocol")
    consumer = {
        **_consumer_defaults(release, model.commits, protocol, exactly_once=exactly_once),
        **consumer,
    }
    producer = {**producer_defaults(release, exactly_once=exactly_once), **producer}
    consumes = under("consumer.", lambda: member(consumer, cluster, release, model.name))
    if consumes.text("group.protocol") == "consumer" and not is_since(release, GENERAL_SINCE):
        raise Problem(
            ("kafka",),
            f"a client of {release} with consumer.group.protocol: consumer",
            f"{GENERAL_SINCE} or newer",
            "leave it out",
        )
    produces = under(
        "producer.", lambda: _producer(producer, cluster, release, exactly_once=exactly_once)
    )
    _check_protocol(consumes, produces)
    return filled(ProcessorSpec, model, config=config, consumer=consumes, producer=produces)


def _consumer_defaults(
    release: str, commits: str, protocol: object, *, exactly_once: bool
) -> dict[str, object]:
    """Settings of a task's consumer where the file gives none."""
    found: dict[str, object] = {"group.protocol": protocol} if protocol is not None else {}
    if commits == "after":  # the others are no applications of Streams
        found = with_streams_rebalance(found, release)
    reads = EXACTLY_ONCE_CONSUMER if exactly_once else {}
    return {**consumer_defaults(release), **reads, "enable.auto.commit": commits == "auto", **found}


def client_defaults(task: ProcessorSpec) -> Mapping[Scope, Mapping[str, object]]:
    """Settings of a task and of its clients that are not Kafka's defaults, and that nobody gave."""
    exactly_once = task.config.text("processing.guarantee") != AT_LEAST_ONCE
    release = task.config.version
    has_protocol = task.consumer.has("group.protocol")
    protocol = task.consumer.text("group.protocol") if has_protocol else None
    interval = {"commit.interval.ms": EXACTLY_ONCE_COMMIT_INTERVAL_MS}
    return {
        "streams": interval if exactly_once else {},
        "consumer": _consumer_defaults(release, task.commits, protocol, exactly_once=exactly_once),
        "producer": {
            **({"acks": "all"} if exactly_once else {}),  # before 3.0 idempotence brings it
            **producer_defaults(release, exactly_once=exactly_once),
        },
    }


def split_config(
    config: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
    """Settings of the application, of its consumer and of its producer, without their prefixes."""
    parts: dict[str, dict[str, object]] = {"": {}, "consumer": {}, "producer": {}}
    for name, value in config.items():
        client, dot, rest = name.partition(".")
        if dot and client in _CLIENTS:
            parts[client][rest] = value
        else:
            parts[""][name] = value
    return parts[""], parts["consumer"], parts["producer"]


def under(prefix: str, make: Callable[[], T]) -> T:
    """The result of ``make``; a problem names the setting as the scenario does."""
    try:
        return make()
    except Problem as problem:
        name, *rest = problem.path
        raise Problem(
            ("config", f"{prefix}{name}", *rest), problem.found, problem.allowed, problem.remedy
        ) from None


def _check_own(
    consumer: Mapping[str, object],
    producer: Mapping[str, object],
    *,
    exactly_once: bool,
    automatic: bool,
) -> None:
    """Settings that Streams sets itself, whatever is given."""
    fixed: list[tuple[str, Mapping[str, object], str, object]] = [
        ("consumer", consumer, "enable.auto.commit", automatic),
        ("producer", producer, "transactional.id", None),
    ]
    if exactly_once:
        fixed += [("consumer", consumer, name, v) for name, v in EXACTLY_ONCE_CONSUMER.items()]
        fixed.append(("producer", producer, "enable.idempotence", True))
        fixed.append(("producer", producer, "acks", "all"))
    for client, given, name, value in fixed:
        if name in given and given[name] != value:
            raise Problem(
                ("config", f"{client}.{name}"), f"{given[name]!r}, which is {_OWN}", repr(value)
            )


def _check_protocol(consumer: Config, producer: Config) -> None:
    name = "security.protocol"
    own, other = consumer.text(name), producer.text(name)
    if own != other:
        raise Problem(
            ("config", f"consumer.{name}"),
            f"{own} beside producer.{name} {other}",
            "the same for both clients of a task",
        )


def member(given: Mapping[str, object], cluster: ClusterSpec, release: str, group: str) -> Config:
    """Settings of the consumer of a task, which is a member of the group.

    Raises:
        Problem: With the setting's name as its path.
    """
    found = cross_rules.consumer_config(
        settings.resolve("consumer", given, version=release),
        given,
        cluster.config,
        in_group=True,
    )
    cross_rules.check_client_rack(found, cluster)
    check_member(found, given, cluster, group)
    return found


def _producer(
    given: Mapping[str, object], cluster: ClusterSpec, release: str, *, exactly_once: bool
) -> Config:
    found = cross_rules.producer_config(settings.resolve("producer", given, version=release), given)
    if not exactly_once:
        return found
    longest = cluster.config.number("transaction.max.timeout.ms")
    if found.number("transaction.timeout.ms") > longest:
        raise Problem(
            ("transaction.timeout.ms",),
            f"{found.number('transaction.timeout.ms')} is above transaction.max.timeout.ms",
            f"1 to {longest}",
        )
    if not found.flag("enable.idempotence"):
        raise Problem(("retries",), "no idempotence", "retries above 0 with exactly_once_v2")
    return found
