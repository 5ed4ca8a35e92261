"""Pages from Jinja2 templates: every value is escaped, and a name that is not there is an error.

A package's templates are in its folder ``templates``; ``page.html`` and ``tables.html`` of this one
serve all of them.
"""

from base64 import b64encode
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analysis.pages import script
from analysis.pages.cells import instant, short
from sim.units import show_bytes


def render(package: str, template: str, parts: tuple[str, ...] = (), /, **data: object) -> str:
    """The filled template of a package.

    Args:
        package: Dotted name.
        template: File name in the package's ``templates``.
        parts: Names of the page's scripts, see :mod:`analysis.pages.script`.
        data: Values by their names in the template.
    """
    code = script.text(parts)
    own = {"style": Markup(script.style()), "script": Markup(code), "digest": script.digest(code)}  # noqa: S704 - ours
    return _environment(package).get_template(template).render(own | data)


@cache
def _environment(package: str) -> Environment:
    """Environment of a package; executors of Spark, which render nothing, never make one."""
    loader = ChoiceLoader([PackageLoader(name) for name in (package, "analysis.pages")])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": show_bytes,
        "data_uri": _data_uri,
        "count": _count,
        "duration": short,
        "instant": instant,
        "place": _place,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def _count(value: float) -> str:
    return f"{value:,}"


def _place(percent: float) -> str:
    return f"{percent:.2f}".rstrip("0").rstrip(".")


def _data_uri(svg: str) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
