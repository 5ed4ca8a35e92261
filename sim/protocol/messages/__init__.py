"""Requests and responses: the fields that carry meaning, and their size on the wire.

Frozen, and shared between nodes by reference. Field names are Kafka's. ``size_bytes`` is an
estimate good to a few bytes for the fixed parts and exact for record batches: it is what bandwidth
and copying are charged for.

Source: ``clients/src/main/resources/common/message`` (4.1).
"""
