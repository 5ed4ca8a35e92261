"""What both judges say of a run: the checker within it, and Spark on its trace and files."""

import json
import os
import shutil

from analysis.report import write as report
from sim.checking.outcomes.verdict import COUNTS


def reported(directory, tmp_path):
    """The report of a copy, so that the run itself stays as it was; bytes are shared."""
    copy = tmp_path / "reported"
    shutil.copytree(directory, copy, copy_function=os.link)
    page = report.build([copy])
    assert page == copy / "report" / "index.html"
    assert page.stat().st_size > 10_000
    return json.loads((copy / "report" / "report.json").read_text())


def differences(found, ran):
    """Where the two disagree, of a report as :func:`reported` gives it and the run."""
    told = [*found["differences"], *found["inputs"]["differences"]]
    records = found["durability"]["records"]
    told += [
        f"{name}: Spark {records[name]}, the checker {ran.records[name]}"
        for name in COUNTS
        if records[name] != ran.records[name]
    ]
    if not told and found["agrees_with_checker"] is not True:
        told.append("the report does not say that they agree")
    return told
