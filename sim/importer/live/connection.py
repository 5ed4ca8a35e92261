"""Connections to a running cluster through kafka-python's admin client, behind a gate.

The admin client owns connections, versions, TLS and SASL. Requests are made here and not by its
methods, as those end at the first error, and a cluster of which a part is down or forbidden is to
be read as far as it goes. The client's log is switched off: it repeats what it was given.

Left out: SASL's oldest framing (Kafka 0.10), which is no Kafka request and does not pass the gate.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import Any, Final, Self

from sim.errors import SimulationError
from sim.importer.live.guard import Foreign, Gate, WriteRefused

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import errors
    from kafka.admin import KafkaAdminClient
    from kafka.net.compat import KafkaNetClient
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector

BOOTSTRAP_MS: Final = 15_000
"""Patience until any of the given brokers has answered."""

CONNECT_MS: Final = 8_000
ANSWER_MS: Final = 20_000
RETRIES: Final = 20
RETRY_S: Final = 0.25
"""A broker that throttles, or has just closed a connection, is asked again for five seconds."""

OTHERS: Final = 2
"""Brokers that are tried after the first, where any may answer."""

_API_VERSIONS: Final = 18
_SASL_AUTHENTICATE: Final = 36
_LATE: Final = "no answer in time: is it reachable from here?"
_CLOSES: Final = "it closes the connection: is security.protocol that of this listener?"
_HINTS: Final = (
    ("certificate verify failed", "its certificate is not trusted: ssl.truststore.location"),
    ("hostname mismatch", "its certificate is for another name"),
    ("handshake failed", "no TLS handshake: is security.protocol that of this listener?"),
    ("saslauthenticationfailed", "it refuses these credentials: sasl.jaas.config"),
    ("unsupportedsaslmechanism", "it does not offer this sasl.mechanism"),
    ("illegalsaslstate", "it does not speak SASL: is security.protocol that of this listener?"),
    ("refused", "connection refused: does a broker listen there?"),
    ("timed out", _LATE),
    ("timeout", _LATE),
    ("dns", "its name is not known here"),
    ("name or service", "its name is not known here"),
    ("invalid frame", "it does not speak Kafka in the clear: is security.protocol missing?"),
    ("disconnected", _CLOSES),
    ("authorization", "not authorised"),
)
"""Sentences for errors of connections, by words of the error; its own text is not shown."""


class NoAnswer(Exception):  # noqa: N818
    """A request that was not answered. ``args``: why, in words."""


class _ReadOnlyManager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's connections, each with the gate in front of its socket."""

    def __init__(self, net: Foreign, gate: Gate, **configs: Foreign) -> None:
        super().__init__(net, **configs)
        self._gate = gate
        self.failures: dict[Any, Exception] = {}
        """Errors of nodes that were not reached, by their ids."""

    def send(
        self, request: Foreign, node_id: Foreign = None, request_timeout_ms: Foreign = None
    ) -> Foreign:
        """Sends a request that only reads.

        Raises:
            WriteRefused: For any other.
        """
        self._gate.check_request(request)
        return super().send(request, node_id=node_id, request_timeout_ms=request_timeout_ms)

    async def _build_transport(self, node: Foreign, timeout_at: Foreign = None) -> Foreign:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        write = transport.write

        def checked(data: bytes) -> None:
            self._gate.check_frames(bytes(data))
            write(data)

        def each(chunks: Sequence[bytes]) -> None:
            for chunk in chunks:
                checked(chunk)

        transport.write, transport.writelines = checked, each
        return transport

    async def _connect(
        self, node: Foreign, conn: Foreign, *words: Foreign, **options: Foreign
    ) -> None:
        await super()._connect(node, conn, *words, **options)
        if conn.init_future.exception is not None:
            self.failures[node.node_id] = conn.init_future.exception


class Connection:
    """An open way to a cluster on which only questions can be sent; a context manager."""

    def __init__(self, servers: Sequence[str], options: Mapping[str, Any]) -> None:
        """Connect to any of the servers.

        Args:
            servers: ``HOST:PORT`` each.
            options: kafka-python's own, for TLS and SASL.

        Raises:
            SimulationError: If none answers; the message says why, without secrets.
        """
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
        self.gate = Gate()
        self._unreached: dict[int, str] = {}
        self._made: list[KafkaNetClient] = []
        try:
            self._admin = KafkaAdminClient(
                bootstrap_servers=list(servers),
                kafka_client=self._client,
                bootstrap_timeout_ms=BOOTSTRAP_MS,
                **{"request_timeout_ms": ANSWER_MS, "client_id": "logquake-import", **options},
            )
        except errors.KafkaError as error:
            why = reason_of((*self._failures(), error)[0])
            if "sasl_mechanism" in options:
                why = reason_with_sasl(why, tried=self.gate.sent[_SASL_AUTHENTICATE] > 0)
            self._close_made()
            named = ", ".join(servers)
            raise SimulationError(f"--bootstrap {named}: no broker answers: {why}") from None
        except BaseException:
            self._close_made()
            raise
        if not self.gate.sent[_API_VERSIONS]:
            self.close()
            raise WriteRefused("this kafka-python sends past the gate that keeps it read-only")

    def _client(self, **configs: Foreign) -> KafkaNetClient:
        net = NetworkSelector(**configs)
        limits = {"socket_connection_setup_timeout_ms": CONNECT_MS}
        manager = _ReadOnlyManager(net, self.gate, **(configs | limits))
        self._made.append(KafkaNetClient(net=net, manager=manager))
        return self._made[-1]

    def _failures(self) -> list[Exception]:
        return [error for made in self._made for error in _manager(made).failures.values()]

    def _close_made(self) -> None:
        for made in self._made:
            net = _manager(made)._net  # noqa: SLF001 - the client that owns them was not finished
            made.close()
            net.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._admin.close()

    def answer(self, request: Foreign, node: int | None = None) -> Foreign:
        """The answer of a node, or of any.

        Raises:
            NoAnswer: If it cannot be reached, does not know the request, or does not answer.
            WriteRefused: If the request does more than read.
        """
        if node in self._unreached:
            raise NoAnswer(self._unreached[node])
        manager = _manager(self._made[0])
        for attempt in range(RETRIES):
            try:
                return manager.run(_sent, manager, request, node)
            except errors.NodeNotReadyError as error:
                failure = manager.failures.get(node)
                if failure is not None or attempt == RETRIES - 1:
                    raise self._missed(node, failure or error) from None
                sleep(RETRY_S)
            except errors.IncompatibleBrokerVersion:
                raise NoAnswer("this version of Kafka does not know the request") from None
            except (errors.KafkaError, OSError) as error:
                if node is None and attempt < OTHERS:
                    continue  # the client leaves out the broker that has just failed
                raise self._missed(node, manager.failures.get(node, error)) from None
        raise NoAnswer("no answer")

    def _missed(self, node: int | None, error: Exception) -> NoAnswer:
        reason = reason_of(error)
        if node is not None and node in _manager(self._made[0]).failures:
            self._unreached[node] = reason
        return NoAnswer(reason)

    def version(self, node: int) -> tuple[int, ...]:
        """Version of a broker, as the requests that it knows show it; empty if it is not there."""
        if node in self._unreached:
            return ()
        try:
            data = self._admin.get_broker_version_data(node)
        except errors.KafkaError:
            return ()
        return tuple(data.broker_version)

    def features(self) -> Mapping[str, Mapping[str, Any]]:
        """Finalised features of the cluster; none where they are not known."""
        try:
            found: Mapping[str, Mapping[str, Any]] = self._admin.describe_features()
        except errors.KafkaError:
            return {}
        return found

    @staticmethod
    def now_s() -> float:
        """A steady clock, in seconds."""
        return monotonic()

    @staticmethod
    def wait(seconds: float) -> None:
        """Let real time pass."""
        sleep(seconds)


def _manager(client: KafkaNetClient) -> Foreign:
    return client._manager  # noqa: SLF001 - the one way to a request of our own


async def _sent(manager: Foreign, request: Foreign, node: int | None) -> Foreign:
    return await manager.send(request, node_id=node)


def reason_of(error: Exception) -> str:
    """Words for an error of the client; of its own text only what is known to be harmless."""
    text = f"{type(error).__name__} {error}".lower()
    return next((hint for word, hint in _HINTS if word in text), type(error).__name__)


def reason_with_sasl(reason: str, *, tried: bool) -> str:
    """Words for a failed first connection with SASL, of which a refusal may leave no other trace.

    kafka-python drops an answer that the end of the connection comes with, and then sees the end
    only, or waits in vain until the request times out.

    Args:
        reason: Words for the error alone.
        tried: Whether credentials were sent.
    """
    if reason == _CLOSES:
        return "it closes the connection: are these credentials, and the protocol, right?"
    if reason == _LATE and tried:
        return "it does not answer these credentials in time: are they right?"
    return reason
