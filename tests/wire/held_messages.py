"""Messages of a release as the data file has them, in the form in which the jars are read."""

from sim.wire.definitions import NEVER_FLEXIBLE, definition
from tools.kafka_messages import Message


def word(field, version):
    """A field of one version."""
    array, tag = "[]" if field.array else "", "" if field.tag is None else f"#{field.tag}"
    null = field.nullable_since is not None and version >= field.nullable_since
    default = "" if field.default is None else f"={field.default}"
    return f"{field.name}:{array}{field.type}{'?' if null else ''}{tag}{default}"


def layout(schema, version):
    """Fields of one version; structures that none of them has, even in one another, are absent."""
    found, open_names = {}, [""]
    while open_names:
        name = open_names.pop(0)
        fields = schema.structures[name] if name else schema.fields
        here = [field for field in fields if field.in_version(version)]
        found[name] = [word(field, version) for field in here]
        open_names += [f.type for f in here if f.type in schema.structures and f.type not in found]
    return found


def held(name, release):
    """A message of a release; ``None`` if it is not in the data file."""
    one = definition(name, release)
    if one is None:
        return None
    flexible = {
        v: v >= one.flexible_since and one.flexible_since < NEVER_FLEXIBLE for v in one.versions
    }
    layouts = {version: layout(one.schema, version) for version in one.versions}
    return Message(name, one.of, one.key, one.unstable, flexible, layouts)


def differences(theirs, release):
    """Names of messages that a release does not define as the data file says."""
    return [one.name for one in theirs if not is_alike(one, held(one.name, release))]


def is_alike(theirs, ours):
    """True for the same facts; of what has no key in an older release ours has the newer one's."""
    if ours is None or theirs.key not in {ours.key, -1}:
        return False
    return ours._replace(key=theirs.key) == theirs
