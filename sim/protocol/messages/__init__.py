"""Requests and responses: the fields that carry meaning, and their size on the wire.

Frozen, and shared between nodes by reference. Field names are Kafka's. ``size_bytes`` is what
bandwidth and copying are charged for: exact for record batches, an estimate for the rest.

Source: ``clients/src/main/resources/common/message`` (4.1).
"""
