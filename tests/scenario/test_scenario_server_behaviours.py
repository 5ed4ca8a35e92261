"""Positions of switches that reach the settings of brokers, controllers and clients."""

import pytest

from sim.scenario.behaviours.registry import DEFAULTS, resolve
from sim.scenario.build import client_configs, translate
from sim.scenario.model.clients import TransactionModel
from sim.scenario.model.tokens import token_config
from sim.scenario.settings.registry import resolve as resolve_settings
from tests.scenario.test_scenario_behaviours import settings_of


@pytest.mark.parametrize(("position", "built"), [("periodic", True), ("none", False)])
def test_whether_leaders_are_balanced_reaches_the_controllers(position, built):
    _, controller = settings_of(f"kraft.leader_balance: {position}")
    assert controller.controller.auto_leader_rebalance is built


@pytest.mark.parametrize("position", ["interval", "backoff_half_session", "backoff"])
def test_how_long_a_broker_waits_after_an_error_reaches_every_broker(position):
    assert settings_of(f"broker.resend: {position}")[0].lifecycle.resend == position


@pytest.mark.parametrize("position", ["interval", "half_session", "socket"])
def test_when_a_silent_controller_is_given_up_reaches_every_broker(position):
    asked = settings_of(f"broker.request_timeout: {position}")[0].lifecycle.request_timeout
    assert asked == position


@pytest.mark.parametrize(("position", "most"), [("thousand", 1_000), ("all", None)])
def test_how_many_tokens_a_sweep_removes_reaches_the_controllers(position, most):
    config = resolve_settings("broker", {"delegation.token.secret.key": "hush"})
    assert token_config(config, {"tokens.sweep": position}).sweep_max == most


@pytest.mark.parametrize(("position", "built"), [("on", True), ("off", False)])
def test_verification_reaches_the_leaders_unless_the_setting_says_no(position, built):
    chosen = {**DEFAULTS, "transactions": "kip98", "transaction.verification": position}
    config = resolve_settings("broker", {})
    assert translate.transaction_config(config, chosen).verifies is built
    never = resolve_settings("broker", {"transaction.partition.verification.enable": False})
    assert translate.transaction_config(never, chosen).verifies is False


@pytest.mark.parametrize(("position", "built"), [("all", True), ("first", False)])
def test_which_partitions_are_added_reaches_the_client(position, built):
    chosen = {**DEFAULTS, "transactions": "kip98", "client.add_partitions": position}
    assert client_configs.transactions(TransactionModel(records=5), chosen).adds_partitions is built


@pytest.mark.parametrize(("version", "built"), [("4.0", True), ("4.1", False)])
def test_how_many_epochs_a_fenced_end_takes_reaches_the_coordinators(version, built):
    config = resolve_settings("broker", {})
    assert translate.transaction_config(config, resolve({}, version)).bumps_before_end is built


@pytest.mark.parametrize(("position", "built"), [("once", False), ("each_attempt", True)])
def test_how_fences_are_repeated_reaches_the_coordinators(position, built):
    chosen = {**DEFAULTS, "transactions": "kip98", "transaction.fence": position}
    config = resolve_settings("broker", {})
    assert translate.transaction_config(config, chosen).repeats_fences is built
