"""The demo runs, reports, and says how long each part took."""

import pytest

from tools import demo


def test_the_summary_has_each_part_s_seconds_and_what_compiling_brings():
    took = {"set up": 65.2, "run": 44.4, "report": 53.9}
    sources, compiled = (demo.summary(took, compiled=form).splitlines() for form in (False, True))
    assert sources[0] == "took     set up 65 s, run 44 s, report 54 s"
    assert "make compile" in sources[1]
    assert compiled == sources[:1]
    assert demo.summary({"set up": 0.0, "run": 2.0}, compiled=True) == "took     run 2 s"


@pytest.mark.slow
def test_the_demo_leaves_a_run_with_its_report(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(demo, "OUT", tmp_path / "run")
    changes = ("run.for=2s", "faults=[]", "expect={}")
    assert demo.main([word for change in changes for word in ("--set", change)]) == 0
    assert (tmp_path / "run" / "report" / "index.html").is_file()
    assert "report " in capfd.readouterr().out.splitlines()[-1 - bool(demo.WHY_SOURCES)]
    assert demo.main(["--set", "run.for=never"]) == 2
