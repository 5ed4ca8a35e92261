"""The simulator. It imports nothing but the choice of the form in which its rooms come."""

import sim.compiled as _compiled  # noqa: F401 - importing it makes the choice
