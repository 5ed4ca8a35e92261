"""Bytes of a message as Kafka 4.3 sends it, from the schema of the negotiated version."""

from sim.wire.definitions import definition
from sim.wire.fields import Writer, default_of

CLIENT_ID = "producer-1"
"""``client.id`` in the header of a request."""

_LENGTH = 4
_API_KEY_VERSION_CORRELATION = 8
_CORRELATION = 4


def negotiated(name):
    """The version that a client and a broker of 4.3 use."""
    request = definition(name.removesuffix("Response").removesuffix("Request") + "Request")
    return min(definition(name).versions[-1], request.newest)


def filled(schema, fields, version, values):
    """Every field of the version: those given, as the version has them, else defaults."""
    known = {field.name for field in fields}
    assert values.keys() <= known, f"{schema.name} has no {values.keys() - known}"
    return {
        field.name: _value(schema, field, version, values)
        for field in fields
        if field.in_version(version) and (field.tag is None or field.name in values)
    }


def _value(schema, field, version, values):
    if field.name not in values:
        if field.may_be_no_structure or field.array or field.default == "null":
            return default_of(field, schema, version)
        values = {field.name: {}} if field.type in schema.structures else values
    given = values.get(field.name, default_of(field, schema, version))
    inner = schema.structures.get(field.type)
    if inner is None or given is None:
        return given
    if field.array:
        return [filled(schema, inner, version, each) for each in given]
    return filled(schema, inner, version, given)


def kafka_size(name, values):
    """Length, header and body.

    Args:
        name: Kafka's name of the message.
        values: Texts, bytes and arrays of the message; numbers need none. Fields that the version
            does not have are left out.
    """
    found, version = definition(name), negotiated(name)
    flexible = version >= found.flexible_since
    writer = Writer(found.schema, version, flexible=flexible)
    body = writer.structure(
        found.schema.fields, filled(found.schema, found.schema.fields, version, values)
    )
    if name.endswith("Request"):
        header = _API_KEY_VERSION_CORRELATION + 2 + len(CLIENT_ID)
    else:
        header = _CORRELATION
        flexible = flexible and name != "ApiVersionsResponse"
    return _LENGTH + header + flexible + len(body)
