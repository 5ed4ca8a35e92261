"""Ports for servers that tests start."""

import os
import socket
from contextlib import suppress
from itertools import count, islice

# Below those that Linux chooses for processes that name none (from 32,768, ip_local_port_range):
# another process would have one of them between the search for it and its use.
_FIRST, _COUNT = 10_000, 10_000
_NUMBERS = count(os.getpid() * 37)


def free_ports(number: int) -> list[int]:
    """Find ports of 127.0.0.1 that nobody listens on, other ones with each call."""
    return list(islice(_free(), number))


def _free():
    for each in islice(_NUMBERS, _COUNT):
        port = _FIRST + each % _COUNT
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            yield port
    raise AssertionError("no free port on 127.0.0.1")
