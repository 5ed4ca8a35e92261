"""Sizes of Kafka's messages, as formulas from the schemas of its released jars.

``encoding`` is written by hand; every other module is written by ``python -m tools.message_sizes``
for the module of its name above this package, which calls it with what its messages hold.
"""
