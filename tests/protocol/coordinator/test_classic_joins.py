"""Who joins a consumer group in the classic protocol, by policy and release."""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from tests.protocol.coordinator.test_group_migration import Mixed


@pytest.mark.parametrize("policy", list(MigrationPolicy))
@pytest.mark.parametrize("refuses", [False, True])
def test_since_4_3_1_a_disabled_policy_keeps_classic_members_out(policy, refuses):
    table = Mixed(migration=policy, refuses_classic_joins=refuses)
    table.join("n")
    written = len(table.log)
    joined = table.subscribe("")
    if refuses and policy is MigrationPolicy.DISABLED:
        assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert [*table.group.members] == ["n"]
        assert len(table.log) == written
    else:
        assert table.subscribe(joined.member_id).error is ErrorCode.NONE
        assert sorted(table.group.members) == sorted(["n", joined.member_id])
