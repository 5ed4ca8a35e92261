"""Kafka's settings: names, defaults and bounds from the released jars, and what is modelled."""
