"""The data file of Kafka's messages is what the released jars say today."""

import pytest

from tests.wire.held_messages import differences, held
from tools.kafka_jars import MESSAGE_RELEASES, jars, printed
from tools.kafka_messages import PROGRAM, message

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("version", MESSAGE_RELEASES)
def test_the_data_file_has_every_message_of_a_release_as_its_jars_define_it(
    kafka, version, tmp_path
):
    library = jars(MESSAGE_RELEASES[version], tmp_path / version)
    theirs = [message(row) for row in printed(library, PROGRAM)]
    assert len(theirs) > 240
    assert differences(theirs, version) == []
    assert held("FetchRequest", version) in theirs
