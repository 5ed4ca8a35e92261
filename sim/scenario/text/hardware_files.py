"""``cluster.hardware.file``: figures of a cluster in a file of their own.

A calibration writes such a file. Its figures take the place of the key before anything else is
read, so that a run's ``scenario.yaml`` has
the figures and needs no other file. What the scenario says of a figure, too, is refused: nobody
could know which one was meant.
"""

from pathlib import Path
from typing import Final

from sim.scenario.text.problems import KeyPath, Problem, nearest, one_of
from sim.scenario.text.yaml import Document, ReadError, read

PARTS: Final = ("network", "disk", "cpu")
"""Keys of ``cluster`` that the file may have."""

ABOUT: Final = "measured"
"""Key of where the figures are from: for people."""

BYTES_MAX: Final = 1 << 20
_AT: Final[KeyPath] = ("cluster", "hardware", "file")


def included(document: Document, directory: Path | None) -> None:
    """Puts the figures of the file in the place of its name; changes the document.

    Args:
        document: A scenario's.
        directory: Where the scenario is; ``None``: it may name no file.

    Raises:
        ReadError: If there is no such file, if it is not one of figures, or if a figure is given
            twice.
    """
    cluster = document.data.get("cluster") if isinstance(document.data, dict) else None
    hardware = cluster.get("hardware") if isinstance(cluster, dict) else None
    if not isinstance(hardware, dict) or "file" not in hardware:
        return
    assert isinstance(cluster, dict), "it has hardware"
    name = hardware["file"]
    if not isinstance(name, str) or not name:
        raise _error(document, repr(name), "the name of a file that logquake calibrate wrote")
    if directory is None:
        raise _error(document, repr(name), "no file: this scenario is in none itself")
    found = _figures(document, directory / name)
    for part, figures in found.items():
        own = cluster.setdefault(part, {})
        if not isinstance(own, dict):
            return  # no mapping: refused with its line when the scenario is read
        for key, value in figures.items():
            if key in own:
                raise ReadError(
                    document.origin(("cluster", part, key)),
                    Problem(
                        ("cluster", part, key),
                        f"{key} beside hardware.file, which sets it too",
                        "one of the two",
                        f"remove it, or change it in {name}",
                    ),
                )
            own[key] = value
            document.origins[("cluster", part, key)] = f"{directory / name}:{part}.{key}"
    del hardware["file"]
    if not hardware:
        del cluster["hardware"]


def _figures(document: Document, path: Path) -> dict[str, dict[str, object]]:
    try:
        raw = path.read_bytes() if path.stat().st_size <= BYTES_MAX else b""
        found = read(raw.decode(), str(path))
    except FileNotFoundError:
        remedy = "names are looked for beside the scenario; logquake calibrate writes such a file"
        raise _error(document, f"no file {str(path)!r}", "a file that is there", remedy) from None
    except OSError as error:
        found_text = f"{path} cannot be read: {error.strerror}"
        raise _error(document, found_text, "a readable file") from None
    except UnicodeDecodeError:
        raise _error(document, f"{path}: not UTF-8 text", "a YAML file") from None
    if not isinstance(found.data, dict):
        raise ReadError(found.top, Problem(_AT, "not a mapping of keys", one_of(PARTS)))
    for key, part in found.data.items():
        if key == ABOUT:
            continue
        if key not in PARTS:
            problem = Problem((*_AT, key), f"unknown key {key}", one_of(PARTS), nearest(key, PARTS))
            raise ReadError(found.origin((key,)), problem)
        if not isinstance(part, dict):
            raise ReadError(found.origin((key,)), Problem((*_AT, key), "no mapping", "figures"))
    return {key: dict(part) for key, part in found.data.items() if key != ABOUT}


def _error(document: Document, found: str, allowed: str, remedy: str = "") -> ReadError:
    return ReadError(document.origin(_AT), Problem(_AT, found, allowed, remedy))
