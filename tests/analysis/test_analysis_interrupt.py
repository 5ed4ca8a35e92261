"""SIGINT ends a report without a traceback, wherever Spark is just then."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from analysis.spark.session import _quiet_interrupt
from tests.analysis.synthetic import write_run


def test_an_interrupt_is_raised_and_nothing_is_logged_or_warned_about_it(caplog):
    before = signal.getsignal(signal.SIGINT)

    def interrupted():
        with _quiet_interrupt() as launched:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a new SparkContext changes it
            launched()
            try:
                os.kill(os.getpid(), signal.SIGINT)
            finally:
                logging.exception("as py4j does")
                warnings.warn_explicit("cancelled", UserWarning, "c.py", 1, "pyspark.sql.c")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    assert warned == []
    assert signal.getsignal(signal.SIGINT) is before
    assert caplog.records == []
    logging.warning("heard again")
    assert len(caplog.records) == 1


def test_an_interrupt_while_java_is_launched_waits_until_it_is_there():
    steps = []

    def interrupted():
        with _quiet_interrupt() as launched:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("Java is there")
            launched()
            steps.append("work")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["Java is there"]


def test_an_interrupt_that_a_finalizer_of_python_drops_comes_again(capfd):
    class Finalized:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    def interrupted():
        with _quiet_interrupt() as launched:
            launched()
            Finalized()
            time.sleep(10)

    before = sys.unraisablehook
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 5
    assert sys.unraisablehook is before
    assert "KeyboardInterrupt" not in capfd.readouterr().err


def test_outside_the_main_thread_signals_are_left_alone():
    seen = []

    def work():
        with _quiet_interrupt() as launched:
            launched()
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2, 6, 9])
def test_sigint_of_a_report_prints_no_traceback_and_exits_with_130(tmp_path, seconds):
    write_run(tmp_path, {}, verdict={"records": {}})
    (tmp_path / "run.json").write_text(json.dumps({"seed": 1, "complete": True}))
    child = subprocess.Popen(
        [sys.executable, "-m", "sim", "report", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, printed = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all of its group
        _, printed = child.communicate(timeout=120)
        assert child.returncode == 130, printed
    assert "Traceback" not in printed
