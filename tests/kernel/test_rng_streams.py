"""Named streams: a new draw in one never moves another."""

import numpy as np

from sim.rng import Streams


def test_a_stream_is_the_same_whichever_stream_was_made_before_it():
    first = Streams(7)
    alone = [first.named("network/1->2").unit() for _ in range(3)]
    second = Streams(7)
    second.named("disk/1").unit()
    assert [second.named("network/1->2").unit() for _ in range(3)] == alone


def test_streams_differ_by_name_and_by_seed():
    assert Streams(7).named("a").unit() != Streams(7).named("b").unit()
    assert Streams(7).named("a").unit() != Streams(8).named("a").unit()


def test_the_draws_are_those_of_every_platform():
    stream = Streams(1).named("golden")
    assert [stream.below(1_000) for _ in range(5)] == GOLDEN_BELOW
    assert np.floor(Streams(1).vector("golden").units(4) * 1_000).tolist() == GOLDEN_VECTOR


def test_a_shuffle_keeps_every_item():
    stream = Streams(3).named("placement")
    assert sorted(stream.shuffled(list(range(50)))) == list(range(50))
    assert stream.shuffled(list(range(50))) != list(range(50))


GOLDEN_BELOW = [411, 727, 723, 680, 644]
GOLDEN_VECTOR = [428.0, 836.0, 608.0, 669.0]
