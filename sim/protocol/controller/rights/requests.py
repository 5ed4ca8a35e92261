"""Requests about rights that the active controller answers."""

from typing import Final

from sim.protocol.controller.rights.acls import create_acls, delete_acls
from sim.protocol.controller.rights.tokens import Tokens
from sim.protocol.controller.types import ControllerConfig, Decision
from sim.protocol.messages.base import Request
from sim.protocol.messages.security import (
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DeleteAclsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from sim.protocol.metadata.image import MetadataImage
from sim.units import Micros

RIGHTS_REQUESTS: Final[tuple[type[Request], ...]] = (
    CreateAclsRequest,
    DeleteAclsRequest,
    CreateDelegationTokenRequest,
    RenewDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
"""Requests that :func:`decide` decides about."""


def decide(
    config: ControllerConfig,
    image: MetadataImage,
    committed: MetadataImage,
    request: Request,
    now: Micros,
) -> Decision:
    """Decision about a request.

    Args:
        config: Settings of the controller.
        image: Its state with uncommitted records.
        committed: Its committed state, in which tokens are looked up.
        request: An administrator's.
        now: By the controller's clock.
    """
    match request:
        case CreateAclsRequest():
            return create_acls(image, request)
        case DeleteAclsRequest():
            return delete_acls(image, request)
        case (
            CreateDelegationTokenRequest()
            | RenewDelegationTokenRequest()
            | ExpireDelegationTokenRequest()
        ):
            return Tokens(config.tokens, committed).decide(request, now)
        case _:
            message = f"not a request about rights: {request}"
            raise AssertionError(message)
