"""Draws the picture of every scenario of the failure catalogue: ``make gallery``.

A scenario is run only if nothing is kept of it under the present code (see
:mod:`tools.site.facts`); all of them take a quarter of an hour on one core.
"""

import sys
from collections.abc import Sequence

from sim.suite.plan import code_digest
from tools.catalogue_entries import CATALOGUE
from tools.site.facts import cached_facts
from tools.site.picture import PICTURES, draw, picture_of


def make_gallery(names: Sequence[str] = ()) -> int:
    """Draw the pictures of these scenarios, by their files' names, or of all; how many moved."""
    code = code_digest()
    PICTURES.mkdir(parents=True, exist_ok=True)
    files = sorted(CATALOGUE.glob("*.yaml"))
    moved = 0
    for path in [file for file in files if not names or file.stem in names]:
        drawn = draw(cached_facts(path, code))
        picture = picture_of(path)
        if not picture.exists() or picture.read_text(encoding="utf-8") != drawn:
            picture.write_text(drawn, encoding="utf-8")
            moved += 1
    if not names:
        wanted = {picture_of(path) for path in files}
        for picture in sorted(PICTURES.glob("*.svg")):
            if picture not in wanted:
                picture.unlink()
    return moved


def main() -> None:
    """Draw what is named on the command line, or everything."""
    moved = make_gallery(sys.argv[1:])
    sys.stdout.write(f"{PICTURES.name}: {moved} pictures drawn again\n")


if __name__ == "__main__":
    main()
