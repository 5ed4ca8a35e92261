"""Sockets of kafka-python that a closed client has left to the garbage collector.

A client that is closed while a connection is being made drops the coroutine that makes it, and
with it an open socket (kafka-python 3.0.12, ``KafkaNetSocket.sock_connect``). CPython closes that
with a ResourceWarning, which fails whichever test runs then. A busy machine makes it likely.
"""

import socket
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.inet import KafkaNetSocket

AS_IT_IS = KafkaNetSocket.sock_connect
"""The library's own way to connect."""


async def closing(
    self: KafkaNetSocket, net: Any, sock: socket.socket, *words: Any, **options: Any
) -> socket.socket:
    """Connect as the library does, and close the socket if that fails or is dropped."""
    try:
        return await AS_IT_IS(self, net, sock, *words, **options)
    except BaseException:  # GeneratorExit, where the coroutine is dropped
        sock.close()
        raise
