"""``python -m sim`` is the command ``logquake``."""

from sim.cli import main

main()
