"""``python -m sim`` is the command ``logquake``."""

import sys

from sim.cli import main
from sim.lifetime import ENDS_WITH_INPUT, end_with_input

if sys.argv[1:2] == [ENDS_WITH_INPUT]:
    del sys.argv[1]
    end_with_input()
main()
