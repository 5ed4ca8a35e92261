"""Frames and figures for notebooks, from a run of ten rows; and the Python face."""

import pandas as pd
import pytest

import sim
from analysis.notebook import Drawing, faults, latency, leaders, log_time, records
from sim.scenario.run.result import Result

S = 1_000_000


class TenRows:
    """A run with a crash between the first second and the third."""

    def table(self, name):
        if name == "client_batches":
            return pd.DataFrame(
                [
                    ["shop", 0, "orders", 0, 0, "ok", 2 * S, [S, S // 2]],
                    ["shop", 0, "orders", 0, 2, "unknown", 4 * S, [3 * S]],
                    ["shop", 0, "orders", 1, 0, "ok", S, []],
                ],
                columns=[
                    "producer", "producer_index", "topic", "partition", "first_record",
                    "outcome", "t_us", "latency_us",
                ],
            )  # fmt: skip
        if name == "faults":
            rows = [[S, "began", True], [3 * S, "healed", True]]
            frame = pd.DataFrame(rows, columns=["t_us", "phase", "took_effect"])
            same = {"fault": 0, "kind": "crash", "effect": "killed"}
            return frame.assign(**same, target="broker-1", resolved="broker-1")
        assert name == "partition_changes"
        return pd.DataFrame(
            [
                [-S, "orders", 0, 1, "1,2", "1,2"],
                [2 * S, "orders", 0, 2, "2", "1,2"],
                [3 * S, "orders", 0, -1, "2", "1,2"],
                [-S, "__consumer_offsets", 0, 1, "1,2", "1,2"],
            ],
            columns=["t_us", "topic", "partition", "leader", "in_sync", "replicas"],
        )


def test_each_record_is_a_row_with_its_own_instant_and_number():
    found = records(TenRows())
    assert found["record"].tolist() == [0, 1, 2]
    assert found["meant_us"].tolist() == [S, 3 * S // 2, S]
    assert found["outcome"].tolist() == ["ok", "ok", "unknown"]


def test_the_figure_of_latency_is_of_acknowledged_records_in_their_bins():
    axes = latency(TenRows(), S).axes[0]
    top = {line.get_label(): line for line in axes.get_lines()}["max"]
    assert top.get_xdata().tolist() == [0.5, 1.5]
    assert top.get_ydata()[1] == 1000, "milliseconds"
    assert [text.get_text() for text in axes.texts] == ["#0 crash"]


def test_the_figure_of_leaders_names_them_and_leaves_kafkas_own_topics_out():
    figure = leaders(TenRows())
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["orders-0"]
    assert [text.get_text().strip() for text in axes.texts] == ["#0 crash", "1", "2"]
    assert len({bar.get_facecolor() for bar in axes.patches[1:]}) == 3
    named = leaders(TenRows(), ["__consumer_offsets"]).axes[0]
    assert [label.get_text() for label in named.get_yticklabels()] == ["__consumer_offsets-0"]


def test_a_drawing_shows_itself_with_ticks_that_are_words():
    drawing = Drawing(4, 2)
    axes = drawing.add_subplot()
    axes.plot([1, 2], [1, 3000])
    log_time(axes)
    drawing.draw_without_rendering()
    assert "1 s" in [label.get_text() for label in axes.get_yticklabels()]
    assert not axes.spines["top"].get_visible()
    assert drawing._repr_png_().startswith(b"\x89PNG")


def test_faults_are_windows():
    (window,) = faults(TenRows())
    assert (window.kind, window.from_us, window.to_us) == ("crash", S, 3 * S)


def test_what_a_notebook_needs_comes_from_sim():
    assert {name: callable(getattr(sim, name)) for name in sim.__all__} == dict.fromkeys(
        sim.__all__, True
    )
    with pytest.raises(AttributeError, match="no attribute 'explode'; it has Result, Scenario"):
        sim.explode  # noqa: B018 - asking is the test


def test_a_result_shows_what_matters_and_escapes_names(tmp_path):
    records_ = {"sent": 5, "lost_acked": 0, "aborted": 0}
    held = [{"name": "lost_acked", "asked": "0", "shown": "<b>", "held": False}]
    result = Result("a<b", 1, tmp_path, True, {}, {"records": records_}, tuple(held), ())
    shown = result._repr_html_()
    assert "a&lt;b, seed 1: did not hold" in shown
    assert "lost_acked</th><td>0" in shown
    assert "aborted" not in shown
    assert "found &lt;b&gt;" in shown
