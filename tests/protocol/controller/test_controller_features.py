"""Finalized feature levels: who may raise them, who registers, and who is refused (KIP-584)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol import effects as fx
from sim.protocol.controller import features
from sim.protocol.controller.features import update_features
from sim.protocol.controller.registration import BACKOFF_US, ControllerRegistrar
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.kraft.types import Committed, LeadershipChanged
from sim.protocol.messages.admin import UpdateFeaturesRequest
from sim.protocol.messages.cluster import (
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from sim.protocol.metadata.image import BrokerRegistration, ControllerRegistration, MetadataImage
from sim.protocol.metadata.records import (
    BROKER_RESOURCE,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterControllerRecord,
)
from sim.scenario.settings.facts import features_of, supported_features
from tests.protocol.controller.controller_kit import SECOND, Desk

OLD, NEW = supported_features("4.1"), supported_features("4.2")
LEVEL = features_of("4.2")["metadata.version"]
UPGRADE = UpdateFeaturesRequest((("metadata.version", LEVEL),))
QUORUM = (3000, 3001, 3002)
CONFIG = ControllerConfig(supported=NEW, quorum=QUORUM, metadata_version=27)


def image(brokers=(NEW, NEW), controllers=(NEW, NEW, NEW), level=27):
    found = MetadataImage(features={"metadata.version": level})
    for broker, supported in enumerate(brokers, 1):
        found.brokers[broker] = BrokerRegistration(
            broker, 9, "i", "", False, False, features=supported
        )
    for node, supported in zip(QUORUM, controllers, strict=False):
        found.controllers[node] = ControllerRegistration("i", supported)
    return found


def asked(known, request=UPGRADE, config=CONFIG):
    return update_features(known, 3000, config, request)


def test_a_level_that_everybody_supports_is_finalized():
    decision = asked(image())
    assert decision.response.error is E.NONE
    assert decision.records == (FeatureLevelRecord("metadata.version", LEVEL),)


@pytest.mark.parametrize(
    ("known", "config", "who"),
    [
        (image(brokers=(NEW, OLD)), CONFIG, "broker 2 only supports versions 7 to 27"),
        (image(controllers=(NEW, OLD, NEW)), CONFIG, "controller 3001 only supports"),
        (image(controllers=(NEW, NEW)), CONFIG, "controller 3002 has not registered"),
        (image(), ControllerConfig(supported=OLD, quorum=QUORUM), "controller 3000 only supports"),
    ],
)
def test_a_level_is_refused_while_one_server_does_not_support_it(known, config, who):
    decision = asked(known, config=config)
    assert decision.records == ()
    assert decision.response.error is E.INVALID_UPDATE_VERSION
    assert who in decision.response.reason


def test_a_fenced_broker_counts_as_long_as_it_is_registered():
    known = image(brokers=(NEW,))
    known.brokers[2] = BrokerRegistration(2, 9, "i", "", True, False, features=OLD)
    assert asked(known).response.error is E.INVALID_UPDATE_VERSION
    del known.brokers[2]
    assert asked(known).response.error is E.NONE


def test_below_3_7_controllers_cannot_be_checked():
    assert asked(image(controllers=(), level=14)).response.error is E.NONE


def test_one_level_that_cannot_be_raised_refuses_them_all():
    request = UpdateFeaturesRequest((("metadata.version", LEVEL), ("streams.version", 2)))
    decision = asked(image(), request)
    assert decision.records == ()
    assert "streams.version 2" in decision.response.reason


def test_a_lower_level_is_refused_and_the_same_one_changes_nothing():
    assert asked(image(level=30), config=CONFIG).response.error is E.INVALID_UPDATE_VERSION
    same = asked(image(level=LEVEL))
    assert (same.records, same.response.error) == ((), E.NONE)


def test_eligible_leader_replicas_need_their_metadata_version_and_a_setting_in_the_metadata():
    request = UpdateFeaturesRequest((("eligible.leader.replicas.version", 1),))
    low = asked(image(level=22), request)
    assert "it needs metadata.version 23" in low.response.reason
    known = image(level=25)
    known.broker_configs[2] = {"min.insync.replicas": "2"}
    together = asked(known, UpdateFeaturesRequest((*request.updates, ("metadata.version", LEVEL))))
    assert together.records == (
        FeatureLevelRecord("metadata.version", LEVEL),
        ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", "1"),
        ConfigRecord(BROKER_RESOURCE, "2", "min.insync.replicas", None),
        FeatureLevelRecord("eligible.leader.replicas.version", 1),
    )


def test_planted_a_controller_that_asks_no_broker_finalizes_what_one_cannot_read(monkeypatch):
    monkeypatch.setattr(features, "_unsupported", lambda *_: "")
    assert asked(image(brokers=(NEW, OLD))).response.error is E.NONE


# -- through the controller -----------------------------------------------------------------------


def test_a_broker_that_does_not_support_a_finalized_level_may_not_register():
    desk = Desk(brokers=0, supported=NEW, quorum=QUORUM, metadata_version=27)
    for node in QUORUM:
        desk.ask(ControllerRegistrationRequest(node, "i", NEW))
    desk.ask(BrokerRegistrationRequest(1, "a", "", -1, ("dir-1",), OLD))
    assert desk.controller.committed.brokers[1].features == OLD
    assert desk.ask(UPGRADE).error is E.INVALID_UPDATE_VERSION
    desk.now += 60 * SECOND
    desk.ask(BrokerRegistrationRequest(1, "b", "", -1, ("dir-1",), NEW))
    assert desk.ask(UPGRADE).error is E.NONE
    assert desk.controller.committed.features["metadata.version"] == LEVEL
    late = BrokerRegistrationRequest(2, "a", "", -1, ("dir-2",), OLD)
    assert desk.ask(late).error is E.UNSUPPORTED_VERSION


# -- a controller's own registration --------------------------------------------------------------


class Registration:
    """A registrar with its metadata."""

    def __init__(self, level):
        self.image = MetadataImage(features={"metadata.version": level})
        self.machine = ControllerRegistrar(3001, "mine", NEW, lambda: self.image, lambda: 0.5)

    def tell(self, event, now=0):
        return self.machine.handle(event, now)

    def sent(self, event, now=0):
        return [effect for effect in self.tell(event, now) if isinstance(effect, fx.Send)]


HEARD = Committed(0, 1, ())
LED = LeadershipChanged(1, 3000, is_leader=False)


def test_a_controller_registers_once_the_metadata_version_allows_it():
    found = Registration(level=14)
    assert found.sent(LED) == found.sent(HEARD) == []
    found.image.features["metadata.version"] = 15
    (send,) = found.sent(HEARD)
    assert (send.to, send.request.features) == (3000, NEW)
    assert found.sent(HEARD) == []  # the request is open


def test_a_controller_registers_again_for_its_next_process_alone():
    found = Registration(level=27)
    found.image.controllers[3001] = ControllerRegistration("former", OLD)
    (send,) = found.sent(LED)
    found.image.controllers[3001] = ControllerRegistration("mine", NEW)
    answer = ControllerRegistrationResponse(E.NONE)
    assert found.sent(ResponseReceived(3000, send.correlation, answer)) == []


def test_a_controller_that_was_answered_waits_for_its_record_and_does_not_ask_twice():
    found = Registration(level=27)
    assert found.sent(HEARD) == []  # nobody leads
    (send,) = found.sent(LED)
    answer = ControllerRegistrationResponse(E.NONE)
    assert found.sent(ResponseReceived(3000, send.correlation, answer)) == []
    assert found.sent(HEARD) == []
    found.image.controllers[3001] = ControllerRegistration("another", OLD)
    assert len(found.sent(HEARD)) == 1


def test_a_failed_registration_is_tried_again_after_a_wait_that_doubles():
    found = Registration(level=27)
    (send,) = found.sent(LED)
    waits = []
    for _ in range(3):
        (timer,) = found.tell(RequestFailed(3000, send.correlation, E.REQUEST_TIMED_OUT))
        waits.append(timer.at)
        (send,) = found.sent(TimerFired("communication"))
    assert waits == [BACKOFF_US, 2 * BACKOFF_US, 4 * BACKOFF_US]


def test_a_snapshot_has_the_controllers_that_registered():
    known = image(controllers=(NEW, OLD))
    records = [r for r in image_records(known) if isinstance(r, RegisterControllerRecord)]
    assert [(r.controller, r.features) for r in records] == [(3000, NEW), (3001, OLD)]
    fresh = MetadataImage()
    fresh.load(1, 1, records)
    assert fresh.controllers == known.controllers
