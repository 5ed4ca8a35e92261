"""A store whose real files are made late holds, once settled, what any other store holds."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.log.store.files import FileStore
from sim.log.store.platter import PAGE, RealFiles

_DIRECTORIES = ("t-0", "t-1")

_Step = tuple[str, str, str, int]


def tree(root: Path) -> dict[str, bytes | None]:
    """Contents of real files by their names; ``None`` for directories."""
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


def perform(store: FileStore, step: _Step) -> None:
    """One step, if it makes sense now."""
    what, directory, name, amount = step
    path, other = f"{directory}/{name}", f"{directory}/{name}x"
    data = bytes(amount % 251 for _ in range(amount))
    file = store.open(path)
    if what == "directory":
        store.make_directory(directory)
    elif directory not in store.directories():
        return
    elif what == "create":
        store.create(path)
    elif what == "replace":
        store.replace(path, data)
    elif what == "back":
        store.write_back_all()
    elif what == "move":
        store.rename_directory(directory, f"{directory}-moved{amount}")
    elif what == "drop":
        store.delete_directory(directory)
    elif file is None:
        return
    elif what == "append":
        file.append(data)
    elif what == "truncate":
        file.truncate(amount)
    elif what == "delete":
        store.delete(path)
    elif what == "rename":
        store.rename(path, other)
    elif what == "settle":
        store.settle()


def contents(store: FileStore) -> Iterator[tuple[str, bytes | None]]:
    for directory in store.directories():
        yield directory, None
        for name in store.names(directory):
            yield f"{directory}/{name}", store.read_whole(f"{directory}/{name}")


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("directory", "create", "replace", "back", "append", "truncate", "delete", "rename",
             "move", "drop", "settle")
        ),
        st.sampled_from(_DIRECTORIES),
        st.sampled_from(("a", "ax", "b")),
        st.sampled_from((0, 1, 7, PAGE + 1)),
    ),
    max_size=40,
)  # fmt: skip
_FILLED: list[_Step] = [("directory", "t-0", "a", 0), ("replace", "t-0", "a", 7)]


def check(steps: list[_Step]) -> None:
    """Both stores answer the same after each step, and have the same real files at the end."""
    with tempfile.TemporaryDirectory() as directory:
        roots = Path(directory, "at-once"), Path(directory, "late")
        at_once, late = FileStore(roots[0]), FileStore(roots[1], late=True)
        for step in [("directory", name, "", 0) for name in _DIRECTORIES] + steps:
            perform(at_once, step)
            perform(late, step)
            assert list(contents(at_once)) == list(contents(late))
            assert (at_once.used_bytes, at_once.dirty_bytes) == (late.used_bytes, late.dirty_bytes)
        for store in (at_once, late):
            store.write_back_all()
            store.settle()
            store.close()
        assert tree(roots[0]) == tree(roots[1])


@given(_STEPS)
@example(
    [*_FILLED, ("settle", "t-0", "a", 0), ("replace", "t-0", "a", 1), ("rename", "t-0", "a", 0)]
)
@example(
    [*_FILLED, ("settle", "t-0", "a", 0), ("replace", "t-0", "a", 1), ("delete", "t-0", "a", 0)]
)
@example(
    [*_FILLED, ("move", "t-0", "a", 1), ("directory", "t-0", "a", 0), ("create", "t-0", "a", 0)]
)
@example(
    [*_FILLED, ("append", "t-0", "a", 7), ("back", "t-0", "a", 0), ("truncate", "t-0", "a", 1)]
)
def test_a_settled_store_has_the_files_of_one_that_makes_them_at_once(steps) -> None:
    check(steps)


def test_a_file_without_contents_is_made_late_and_one_that_is_written_back_at_once(tmp_path):
    store = FileStore(tmp_path, late=True)
    store.make_directory("t-0")
    for name in ("t-0/log", "t-0/index"):
        store.create(name)
    store.replace("t-0/epochs", b"0\n0\n")
    assert tree(tmp_path) == {}
    file = store.open("t-0/log")
    assert file is not None
    file.append(b"batch")
    file.flush()
    assert tree(tmp_path) == {"t-0": None, "t-0/log": b"batch"}
    store.settle()
    assert tree(tmp_path) == {
        "t-0": None, "t-0/epochs": b"0\n0\n", "t-0/index": b"", "t-0/log": b"batch",
    }  # fmt: skip
    store.close()


def test_what_a_late_store_has_in_memory_comes_to_a_copy_of_its_process(tmp_path, monkeypatch):
    """A forked future works in a copy of the directory, with names relative to it."""
    monkeypatch.chdir(tmp_path)
    store = FileStore(Path("disk"), late=True)
    store.make_directory("t-0")
    store.replace("t-0/epochs", b"0\n0\n")
    Path("copy/disk").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "copy")
    store.settle()
    assert (tmp_path / "copy/disk/t-0/epochs").read_bytes() == b"0\n0\n"
    assert tree(tmp_path / "disk") == {}


def test_a_removed_file_that_comes_back_is_caught(monkeypatch) -> None:
    remove = RealFiles.remove

    def leaves_the_real_one(self: RealFiles, name: str) -> None:
        if self._late:
            self._made.pop(name, None)
        remove(self, name)

    monkeypatch.setattr(RealFiles, "remove", leaves_the_real_one)
    with pytest.raises(AssertionError):
        check([*_FILLED, ("settle", "t-0", "a", 0), ("delete", "t-0", "a", 0)])


def test_a_replacement_that_stays_in_memory_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(RealFiles, "settle", lambda self: None)
    with pytest.raises(AssertionError):
        check(_FILLED)
