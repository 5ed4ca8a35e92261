"""Incast in a whole run: brokers at the speed of the link overflow a switch's port, and TCP waits.

Source: Phanishayee et al. (FAST 2008), see tests/substrate/test_substrate_switch.py.
"""

from tests.scenarios.run_kit import go


def run(path, **network):
    return go(
        path,
        cluster={"brokers": 3, "controllers": 3, "network": {"bandwidth": "1Gbit/s"} | network},
        producer={"rate": "2000/s", "record.size": "10kB"},
        lasts="3s",
    )


def waited(ran):
    return ran.rows("messages", delayed_by="incast")


def test_a_small_buffer_delays_messages_by_a_timer_and_loses_no_record(tmp_path):
    large = run(tmp_path, **{"switch.buffer": "16MiB"})
    small = run(tmp_path, **{"switch.buffer": "16KiB"})
    assert not waited(large)
    late = waited(small)
    assert late
    assert all(row["t_us"] - row["sent_us"] >= 199_000 for row in late)
    assert small.records["acked"] == small.records["sent"] == 6_000
    assert small.records["lost_acked"] == 0
