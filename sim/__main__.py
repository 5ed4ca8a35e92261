"""``python -m sim`` is the command ``logquake``."""

import sys

from sim.cli import main
from sim.lifetime import ENDS_WITH_INPUT, end_with_input
from sim.progress import REPORTS_PROGRESS, request

for argument, obey in ((ENDS_WITH_INPUT, end_with_input), (REPORTS_PROGRESS, request)):
    if sys.argv[1:2] == [argument]:
        del sys.argv[1]
        obey()
main()
