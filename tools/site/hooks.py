"""Hooks that MkDocs calls: pages that are made, links that fit, nothing from elsewhere."""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from sim.scenario.schema.json_schema import SCHEMA_FILE
from tools.site.api import public_modules
from tools.site.links import PAGES, ROOT, fitted, with_plain_pipes
from tools.site.pages import generated

_FROM_REPOSITORY: Final = {
    page: path
    for path, page in PAGES.items()
    if path.endswith(".md") and not page.startswith("gallery")
}
"""Pages that are documents outside ``docs``."""

_FOREIGN: Final = re.compile(r"https://unpkg\.com/[\w@./-]*")
"""Where the theme's script would load helpers for pages and browsers that this site has not."""


_CELL_CODE: Final = re.compile(r"(?<=<code>)[^<]{12,}(?=</code>(?:(?!<td).)*</td>)", re.DOTALL)
_JOINT: Final = re.compile(r"([./_:,|])(?=\w)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages into the navigation that it names by a star."""
    config.nav = [_expanded(item) for item in config.nav or ()]
    return config


def _expanded(item: Any) -> Any:  # noqa: ANN401 - YAML
    if not isinstance(item, dict):
        return item
    [(title, inner)] = item.items()
    if inner == "api/*":
        parts = [
            {part: [{name: f"api/{name}.md"} for name in modules]}
            for part, modules in public_modules().items()
        ]
        return {title: ["api/index.md", *parts]}
    if inner == "decisions/*":
        pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
        return {title: ["decisions/README.md", *(f"decisions/{page.name}" for page in pages)]}
    return {title: [_expanded(each) for each in inner] if isinstance(inner, list) else inner}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in ``docs``, and the schema."""
    for uri, text in generated().items():
        files.append(File.generated(config, uri, content=text))
    for uri, path in _FROM_REPOSITORY.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        alone = "---\nhide: [navigation]\n---\n" if uri == "index.md" else ""
        files.append(File.generated(config, uri, content=alone + text))
    files.append(File.generated(config, SCHEMA_FILE.name, abs_src_path=str(SCHEMA_FILE)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links fit that lead out of ``docs``, or come from there."""
    del config, files
    uri = page.file.src_uri
    if uri not in generated():
        markdown = fitted(markdown, _FROM_REPOSITORY.get(uri, f"docs/{uri}"), uri)
    return with_plain_pipes(markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let long names in the cells of tables break behind their dots and slashes."""
    del page, config, files
    return _CELL_CODE.sub(lambda found: _JOINT.sub(r"\1<wbr>", found.group(0)), html)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Take foreign addresses out of the theme's script, and what only a server has a use for."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)
    scripts = Path(config.site_dir) / "assets" / "javascripts"
    for script in sorted(scripts.rglob("*.js")):
        text = script.read_text(encoding="utf-8")
        script.write_text(_FOREIGN.sub("", text), encoding="utf-8")
    for extra in sorted(Path(config.site_dir).rglob("*.map")):
        extra.unlink()
