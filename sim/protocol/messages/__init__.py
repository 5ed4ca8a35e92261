"""Requests and responses: the fields that carry meaning, and their size on the wire.

Frozen, and shared between nodes by reference. Field names are Kafka's. ``size_bytes`` is what
bandwidth and copying are charged for: what Kafka 4.3 sends for the same content, by the formulas in
``sizes``; for messages that are not Kafka's, an estimate.

Source: ``clients/src/main/resources/common/message`` (4.1).
"""
