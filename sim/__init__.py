"""The simulator. This package imports nothing, so that sim.trace.schema stays free of SimPy."""
