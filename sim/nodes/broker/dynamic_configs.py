"""Settings of a broker that change while it runs, applied when its metadata says so.

Settings of logs come from the metadata with those of their topics
(:meth:`~sim.protocol.metadata.image.MetadataImage.configs_of`); this module applies the others: the
threads of requests and of the cleaner, and the throttles of replication. Cleaners that are at work
end with the log that they have, and the new ones begin beside them.

Source: ``DynamicBrokerConfig``, ``BrokerConfigHandler``, ``LogCleaner.reconfigure``,
``SocketServer``, ``KafkaRequestHandlerPool.resizeThreadPool``; KIP-226.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.settings import UpkeepSettings
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.server_configs import TOPIC_NAMES, ServerFile
from sim.substrate.host import Host, Servers
from sim.units import MS

THREADS: Final = ("num.io.threads", "num.network.threads")
"""Settings of the threads of requests."""

THROTTLES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
"""Settings of replication's throttles."""

CLEANER: Final = (
    "log.cleaner.threads",
    "log.cleaner.backoff.ms",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
)
"""Settings of cleaners."""


CORDONED = "cordoned.log.dirs"
"""Log directories that get no new replicas (KIP-1066)."""


class SettingChange(NamedTuple):
    """A setting that changed in a running broker."""

    name: str
    before: str
    after: str


class DynamicBrokerConfig:
    """Changes of one broker process's settings.

    Args:
        file: Its file's values of every setting that may change.
        host: Its threads.
        replicas: Its throttles.
        upkeep: Settings of its cleaners, as in its file.
        clean_with: Replaces its cleaners by new ones.
        changes: Where changes are noted.
        cordon: Closes log directories to new replicas.
    """

    def __init__(
        self,
        file: ServerFile,
        host: Host,
        replicas: Replicas,
        upkeep: UpkeepSettings,
        clean_with: Callable[[UpkeepSettings], None],
        changes: list[SettingChange],
        cordon: Callable[[str], None],
    ) -> None:
        self._host = host
        self._replicas = replicas
        self._upkeep = upkeep
        self._clean_with = clean_with
        self._changes = changes
        self._cordon = cordon
        self._known = dict(file.settings)
        for name in THREADS:
            if name in self._known:
                self._resize(name, self._known[name])
        if CORDONED in self._known:
            cordon(self._known[CORDONED])

    def apply(self, image: MetadataImage) -> None:
        """Applies what another image has changed."""
        if not self._known:
            return
        settings = image.server_configs()
        changed = [name for name in self._known if self._known[name] != settings[name]]
        for name in changed:
            if name not in TOPIC_NAMES or _is_inherited(image, TOPIC_NAMES[name]):
                self._changes.append(SettingChange(name, self._known[name], settings[name]))
            self._known[name] = settings[name]
            if name in THREADS:
                self._resize(name, settings[name])
            elif name in THROTTLES:
                self._throttle(name, settings[name])
            elif name == CORDONED:
                self._cordon(settings[name])
        if any(name in CLEANER for name in changed):
            self._clean_with(upkeep_with(self._upkeep, settings))

    def _resize(self, name: str, value: str) -> None:
        host = self._host
        threads: Servers = (
            host.request_handlers if name == "num.io.threads" else host.network_threads
        )
        threads.resize(int(value))

    def _throttle(self, name: str, value: str) -> None:
        manager = self._replicas.manager
        leads = name == "leader.replication.throttled.rate"
        quota = manager.leader_quota if leads else manager.follower_quota
        assert quota is not None, "a rate that may change has a quota from the start"
        quota.set_rate(int(value))


def upkeep_with(upkeep: UpkeepSettings, settings: Mapping[str, str]) -> UpkeepSettings:
    """Settings of the cleaners with those of a server in their place."""
    threads, backoff, rate, buffer, factor = (settings.get(name) for name in CLEANER)
    return replace(
        upkeep,
        cleaner_threads=upkeep.cleaner_threads if threads is None else int(threads),
        cleaner_backoff_us=upkeep.cleaner_backoff_us if backoff is None else int(backoff) * MS,
        cleaner_bytes_per_s=upkeep.cleaner_bytes_per_s if rate is None else float(rate),
        dedupe_bytes=upkeep.dedupe_bytes if buffer is None else int(buffer),
        load_factor=upkeep.load_factor if factor is None else float(factor),
    )


def _is_inherited(image: MetadataImage, name: str) -> bool:
    """True if a topic has no value of its own."""
    return any(name not in image.topic_configs.get(topic, {}) for topic in image.topic_ids)
