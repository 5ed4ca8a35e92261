"""The rules of the house for Python source that the linters do not know.

Each rule is a function from one source file to findings; ``tests/test_house.py`` runs them all and
proves of each that it catches a planted violation. What ruff, mypy and import-linter already check
is not repeated here, save the bans on which determinism rests. Whether a set is iterated is
judged from what one module shows (literals, calls, annotations); a set that comes from elsewhere
is missed.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sim.faults.registry import KINDS

LINES_MAX = 500
"""Lines of a source file; 300 is the aim."""

FUNCTION_LINES_MAX = 70
"""Lines of a function, its docstring included."""

PLACE_MAX = 2
"""Greatest number by which a check takes something from a tuple."""

BANNED_MODULES = ("time", "datetime", "random", "uuid", "secrets", "threading", "asyncio")
"""Sources of wall-clock time, chance and concurrency: none may reach the simulated world."""

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "sim/rng.py": ("random",),
    "sim/cli/verdict.py": ("time",),
    "sim/cli/hunting/clock.py": ("time",),
    "sim/bench.py": BANNED_MODULES,
    "sim/importer/live/connection.py": ("time",),
    "sim/lifetime.py": ("threading",),
    "sim/locks.py": ("datetime",),
    "sim/rehearsal/clock.py": ("time", "datetime"),
    "sim/rehearsal/noise.py": ("time", "threading"),
    "sim/rehearsal/proxy.py": ("asyncio",),
}
"""Who may import banned modules: the streams' own file, those who talk to people, those who see to
processes and their directories, and rehearsals on real ones."""

BANNED_CALLS = ("hash", "id")
"""Their answers differ from process to process."""

_ORDER_KEEPERS = ("list", "tuple", "enumerate", "iter", "zip", "map", "filter", "reversed", "next")
_SET_TYPES = ("set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet")
_SET_METHODS = ("union", "intersection", "difference", "symmetric_difference")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule, at one place."""

    path: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed Python file; ``path`` is relative to the project's root, with slashes."""

    path: str
    text: str
    tree: ast.Module


def read_source(root: Path, path: Path) -> Source:
    """Parse one file under ``root``."""
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(root).as_posix(), text, ast.parse(text))


def sources(root: Path, *folders: str) -> Iterator[Source]:
    """Every Python file under the folders, sorted by path."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if "__pycache__" not in path.parts:
                yield read_source(root, path)


def long_files(source: Source) -> Iterator[Finding]:
    """A file has at most ``LINES_MAX`` lines."""
    count = len(source.text.splitlines())
    if count > LINES_MAX:
        yield Finding(source.path, count, f"{count} lines; {LINES_MAX} are allowed: split the file")


def long_functions(source: Source) -> Iterator[Finding]:
    """A function has at most ``FUNCTION_LINES_MAX`` lines."""
    for node in ast.walk(source.tree):
        if isinstance(node, Function):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > FUNCTION_LINES_MAX:
                yield Finding(
                    source.path,
                    node.lineno,
                    f"{node.name} has {count} lines; {FUNCTION_LINES_MAX} are allowed",
                )


def missing_module_docstring(source: Source) -> Iterator[Finding]:
    """A file says what it is for."""
    text = ast.get_docstring(source.tree) or ""
    if text.strip(".").casefold() in ("", Path(source.path).parent.name, Path(source.path).stem):
        yield Finding(source.path, 1, "no docstring says what this file models and leaves out")


def missing_docstrings(source: Source) -> Iterator[Finding]:
    """Every public class, function and method has a docstring.

    Excused: bodies that are only ``...`` (the class docstring of a protocol speaks for them),
    dunder methods, overloads, and overrides marked as such.
    """
    yield from _undocumented(source, source.tree)


def banned_modules(source: Source) -> Iterator[Finding]:
    """No wall clock, no foreign chance, no threads in ``sim``."""
    allowed = MAY_IMPORT.get(source.path, ())
    for line, names in imports(source.tree):
        head = names[0].split(".")[0]
        if head in BANNED_MODULES and head not in allowed:
            yield Finding(source.path, line, f"imports {head}")


MAY_READ_ENVIRONMENT = (
    "sim/bench.py", "sim/cli/__init__.py", "sim/compiled.py", "sim/mcp/process.py",
    "sim/rehearsal/apache.py",
)  # fmt: skip
"""Users' caches have this machine's speed and Kafka's jars; the form of packages and the start of
libraries are chosen before anything runs; a server's command has its environment."""


def banned_calls(source: Source) -> Iterator[Finding]:
    """No ``hash``, no ``id``, no environment variables."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _name(node.func) in BANNED_CALLS:
            yield Finding(source.path, node.lineno, f"calls {_name(node.func)}()")
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("environ", "getenv")
            and source.path not in MAY_READ_ENVIRONMENT
        ):
            yield Finding(source.path, node.lineno, "reads the environment")


STARTS_SOONER = ("sim/__init__.py", "sim/cli/", "sim/suite/")
"""Where modules are imported when they are needed, so that a command answers at once."""

MAY_NAME_FOR_TYPES: dict[str, str] = {}
"""Modules that may import from ``sim`` for types alone, and why; three at most."""


def hidden_imports(source: Source) -> Iterator[Finding]:
    """Nothing of ``sim`` is imported for types alone: a part does not know its owner."""
    if source.path.startswith(STARTS_SOONER) or source.path in MAY_NAME_FOR_TYPES:
        return
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.If) or not ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        for line, (name, *_) in imports(ast.Module(node.body, [])):
            if name.split(".")[0] == "sim":
                sentence = f"{name} for types alone; take a port, or return what is to be done"
                yield Finding(source.path, line, sentence)


def iterated_sets(source: Source) -> Iterator[Finding]:
    """No set is iterated: its order differs from process to process. ``sorted`` it first."""
    known = _SetNames()
    known.visit(source.tree)
    for node, inside in _with_scope(source.tree):
        for iterated in _iterated_by(node):
            if known.is_set(iterated, inside):
                text = ast.unparse(iterated)
                yield Finding(source.path, iterated.lineno, f"iterates the set {text}; sort it")


def numbered_columns(source: Source) -> Iterator[Finding]:
    """A column of the trace is read by its name (``row[Appends.CRC]``), or its row unpacked whole.

    A row is what is called so, or what its function annotates with, or casts to, a type ``...Row``.
    In the checks nothing at all is taken by a number above ``PLACE_MAX``: whatever name a row goes
    by, most of its columns are above, and another tuple of that width wants names, too.
    """
    known: dict[tuple[str, str], bool] = {}
    for node, scope in _with_scope(source.tree):
        inside = _scope_of(node) if isinstance(node, Function) else scope
        known.update(dict.fromkeys(((inside, name) for name in _rows_named_by(node)), True))
    in_checks = source.path.startswith("sim/checking/")
    for node, scope in _with_scope(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            name = _name(node.value)
            is_row = name == "row" or (scope, name) in known
            places = _places(node.slice)
            if (is_row and places) or (in_checks and max(places, default=0) > PLACE_MAX):
                text = ast.unparse(node)
                yield Finding(source.path, node.lineno, f"reads {text} by number, not by name")


def open_lists(source: Source) -> Iterator[Finding]:
    """A list says what it holds: the effects of a machine are a closed union.

    In the protocol neither ``Any`` does, which the type checker lets pass everywhere.
    """
    open_types = ["list[object]"]
    if source.path.startswith("sim/protocol/"):
        open_types.append("list[Any]")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node) in open_types:
            text = f"{ast.unparse(node)}: name the union of its items"
            yield Finding(source.path, node.lineno, text)


def rows_by_hand(source: Source) -> Iterator[Finding]:
    """A row of the trace is made by its table's ``row(...)``, which knows its columns."""
    if source.path.startswith("sim/trace/rows/"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Emit":
            yield Finding(source.path, node.lineno, "makes a row by hand; its table has row(...)")


def fault_kinds_by_name(source: Source) -> Iterator[Finding]:
    """A kind of fault is named by its class, or met by what its class says of it.

    So a kind that comes later is met, too. A name that is one word may be another thing's; it is
    found beside ``do`` and ``kind``.
    """
    if source.path.startswith(("sim/faults/", "sim/protocol/")):
        return
    nodes = list(ast.walk(source.tree))
    beside = [constant for node in nodes for constant in _beside_kinds(node)]
    for node in nodes:
        name = str(node.value) if isinstance(node, ast.Constant) else ""
        if name in KINDS and ("-" in name or node in beside):
            sentence = f"names the fault {name} by hand; ask its class"
            yield Finding(source.path, getattr(node, "lineno", 1), sentence)


FOR_EVERY_FILE: tuple[Callable[[Source], Iterator[Finding]], ...] = (
    long_files,
    long_functions,
    missing_module_docstring,
)
"""Rules of all Python files, tests and tools included."""

FOR_THE_PACKAGES = (missing_docstrings, iterated_sets, open_lists)
"""Rules of ``sim`` and ``analysis``."""

FOR_THE_SIMULATOR = (
    banned_modules,
    banned_calls,
    numbered_columns,
    rows_by_hand,
    fault_kinds_by_name,
)
"""Rules of ``sim``."""


def imports(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Every imported module with its line; ``from a import b`` may mean ``a`` or ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, [alias.name]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, [node.module, *(f"{node.module}.{a.name}" for a in node.names)]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _beside_kinds(node: ast.AST) -> Iterator[ast.AST]:
    """Constants that an entry of ``faults:`` gives as its kind, or that a kind is compared with."""
    if isinstance(node, ast.keyword) and node.arg == "do":
        yield node.value
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in pairs if _is_constant(key, "do"))
    elif isinstance(node, ast.Compare) and any(map(_is_kind, (node.left, *node.comparators))):
        yield from ast.walk(node)


def _is_kind(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_constant(node.slice, "kind", "do")
    return isinstance(node, ast.Attribute) and node.attr in {"kind", "do"}


def _is_constant(node: ast.expr | None, *values: str) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _rows_named_by(node: ast.AST) -> Iterator[str]:
    """Names that this node shows to be rows of the trace."""
    if isinstance(node, Function):
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None and _is_row_type(argument.annotation):
                yield argument.arg
    elif isinstance(node, ast.AnnAssign) and _is_row_type(node.annotation):
        yield _name(node.target)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        call = node.value
        if _name(call.func) == "cast" and call.args and _is_row_type(call.args[0]):
            yield from map(_name, node.targets)


def _is_row_type(node: ast.expr) -> bool:
    words = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
    return words.split(" | ")[0].strip("'\"").endswith("Row")


def _places(node: ast.expr) -> list[int]:
    """Integers written out in a subscript; those that count from the end as they are."""
    parts = [node.lower, node.upper] if isinstance(node, ast.Slice) else [node]
    found = []
    for part in parts:
        number = part.operand if isinstance(part, ast.UnaryOp) else part
        if isinstance(number, ast.Constant) and isinstance(number.value, int):
            found.append(number.value)
    return found


def _undocumented(source: Source, parent: ast.Module | ast.ClassDef) -> Iterator[Finding]:
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(source, node)
        elif _is_excused(node):
            continue
        if not ast.get_docstring(node):
            yield Finding(source.path, node.lineno, f"{node.name} has no docstring")


def _is_excused(node: Function) -> bool:
    marks = [ast.unparse(decorator) for decorator in node.decorator_list]
    if any(m.endswith((".setter", "overload", "override")) for m in marks):
        return True
    body = node.body
    return len(body) == 1 and isinstance(body[0], ast.Expr) and _is_ellipsis(body[0].value)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _with_scope(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node with the name of the innermost function around it; "" at module level."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, scope = waiting.pop()
        yield node, scope
        inner = _scope_of(node) if isinstance(node, Function) else scope
        waiting.extend((child, inner) for child in ast.iter_child_nodes(node))


def _scope_of(function: Function) -> str:
    return f"{function.name}@{function.lineno}"


def _iterated_by(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose order of iteration this node lets out."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.DictComp):
        yield from (generator.iter for generator in node.generators)
    elif isinstance(node, ast.Starred | ast.YieldFrom):
        yield node.value
    elif isinstance(node, ast.Call):
        joins = isinstance(node.func, ast.Attribute) and node.func.attr in ("join", "extend")
        if joins or _name(node.func) in _ORDER_KEEPERS:
            for argument in node.args:
                if isinstance(argument, ast.GeneratorExp):
                    yield from (generator.iter for generator in argument.generators)
                else:
                    yield argument


class _SetNames(ast.NodeVisitor):
    """Which names, per function, and which attributes a module shows to be sets."""

    def __init__(self) -> None:
        self._scopes = [""]
        self._names: dict[tuple[str, str], bool] = {}
        self._attributes: dict[str, bool] = {}

    def is_set(self, node: ast.expr, scope: str) -> bool:
        """Whether the expression is a set, as far as this module shows."""
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Call):
            makes = _name(node.func) in ("set", "frozenset")
            method = isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS
            return makes or (method and self.is_set(node.func.value, scope))  # type: ignore[attr-defined]  # an Attribute
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor
        ):
            return self.is_set(node.left, scope) or self.is_set(node.right, scope)
        if isinstance(node, ast.Name):
            return self._names.get((scope, node.id), self._names.get(("", node.id), False))
        if isinstance(node, ast.Attribute):
            return self._attributes.get(node.attr, False)
        return False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Enter a function's own scope, with its annotated parameters."""
        self._scopes.append(_scope_of(node))
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            is_set = argument.annotation is not None and _is_set_type(argument.annotation)
            self._names[self._scopes[-1], argument.arg] = is_set
        self.generic_visit(node)
        self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A field's annotation says what the attribute is, unless two classes disagree."""
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                self._note_attribute(field.target.id, is_set=_is_set_type(field.annotation))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """An annotation says what a name is."""
        self._note(node.target, is_set=_is_set_type(node.annotation))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """An assigned value says what a name is."""
        for target in node.targets:
            self._note(target, is_set=self.is_set(node.value, self._scopes[-1]))
        self.generic_visit(node)

    def _note(self, target: ast.expr, *, is_set: bool) -> None:
        if isinstance(target, ast.Name):
            key = (self._scopes[-1], target.id)
            self._names[key] = is_set or self._names.get(key, False)
        elif isinstance(target, ast.Attribute) and (is_set or target.attr not in self._attributes):
            self._note_attribute(target.attr, is_set=is_set)

    def _note_attribute(self, name: str, *, is_set: bool) -> None:
        self._attributes[name] = is_set and self._attributes.get(name, True)


def _is_set_type(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Subscript):
        return _is_set_type(annotation.value)
    if isinstance(annotation, ast.BinOp):
        return _is_set_type(annotation.left) or _is_set_type(annotation.right)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr in _SET_TYPES
    return _name(annotation) in _SET_TYPES
