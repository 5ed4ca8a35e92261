"""The data file of Kafka's messages is what the released jars say today."""

import pytest

from tests.kafka.apache import by_turns
from tests.wire.held_messages import differences, held
from tools.kafka_jars import MESSAGE_RELEASES, PREVIEW, RELEASES, jars, printed
from tools.kafka_messages import PREVIEW_TARGET, PROGRAM, message, records_of_metadata, text

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("version", by_turns(MESSAGE_RELEASES, [*MESSAGE_RELEASES][-1]))
def test_the_data_file_has_every_message_of_a_release_as_its_jars_define_it(
    kafka, version, tmp_path
):
    library = jars(MESSAGE_RELEASES[version], tmp_path / version)
    theirs = [message(row) for row in printed(library, PROGRAM)]
    assert len(theirs) > 240
    assert differences(theirs, version) == []
    assert held("FetchRequest", version) in theirs


def test_the_preview_s_data_file_is_what_its_jars_define(kafka, tmp_path):
    library = jars(RELEASES[PREVIEW], tmp_path / PREVIEW)
    theirs = records_of_metadata(printed(library, PROGRAM))
    assert len(theirs) == 14
    assert text({PREVIEW: theirs}) == PREVIEW_TARGET.read_text(encoding="utf-8")


def test_records_of_3_0_to_3_2_are_version_0_of_the_newest(kafka, tmp_path):
    """What is read by the newest definitions: field by field the same bytes."""
    for version in ("3.0", "3.2"):
        library = jars(RELEASES[version], tmp_path / version)
        for one in records_of_metadata(printed(library, PROGRAM)):
            newest = held(one.name, "4.3")
            if newest is None or one.name in CHANGED:
                continue
            mine = {name: _untagged(words) for name, words in newest.layouts[0].items()}
            assert {n: _untagged(words) for n, words in one.layouts[0].items()} == mine, one.name
            assert one.flexible[0] is newest.flexible[0]


CHANGED = ("FeatureLevelRecord", "DelegationTokenRecord", "UserScramCredentialRecord")
"""Records with other fields, which no cluster of these releases writes here."""


def _untagged(words):
    """Types of fields without those of tags, some of which came later."""
    return [word.partition(":")[2] for word in words if "#" not in word]
