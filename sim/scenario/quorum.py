"""``cluster.quorum``: who votes on metadata, for good (static) or until it is changed (dynamic).

Source: KIP-853; ``kafka-storage format --initial-controllers``.
"""

from typing import Final

from sim.scenario.problems import Problem
from sim.scenario.versions import is_since

_DYNAMIC_SINCE: Final = "3.9"


def initial_controllers(quorum: str, wanted: int | None, controllers: int, version: str) -> int:
    """How many controllers vote from the start in a dynamic quorum; 0 if it is static.

    Raises:
        Problem: With the key as its path.
    """
    if quorum == "static":
        if wanted is not None:
            raise Problem(
                ("initial.controllers",),
                "initial.controllers with cluster.quorum: static, where all controllers vote",
                "cluster.quorum: dynamic beside it",
                "leave it out, or set cluster.quorum: dynamic",
            )
        return 0
    if not is_since(version, _DYNAMIC_SINCE):
        raise Problem(
            ("quorum",),
            f"dynamic with cluster.kafka {version}, which has kraft.version 0 only",
            f"static, or cluster.kafka {_DYNAMIC_SINCE} and newer",
        )
    if wanted is not None and wanted > controllers:
        raise Problem(
            ("initial.controllers",),
            f"{wanted} initial controllers of {controllers}",
            f"1 to {controllers} (cluster.controllers)",
        )
    return wanted or controllers
