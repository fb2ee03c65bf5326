"""Writes the generated pages to docs/reference before Sphinx reads any page: an extension of Sphinx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import api_pages
import op_devices
from measured import measured, runs
from navigation import ROOT
from op_pages import Facts, accuracy_page, families, family_page, index_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

FOLDER = ROOT / "docs/reference"


def pages() -> Iterator[tuple[str, str]]:
    """Yields the path below docs/reference and text of each page."""
    found = families()
    facts = Facts(op_devices.load(), measured(runs(ROOT / "conformance/results")))
    yield "ops/index.md", index_page(found)
    for family, ops in found.items():
        yield f"ops/{family}.md", family_page(family, ops, facts)
    yield from ((f"api/{path}", text) for path, text in api_pages.pages())
    yield "accuracy.md", accuracy_page(found, facts.accuracies)


def write(_: Sphinx | None = None) -> None:
    """Writes the pages that have changed, and removes those that are no longer made."""
    made = {FOLDER / path: text for path, text in pages()}
    for path in set(FOLDER.rglob("*.md")) - made.keys():
        path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes Sphinx write the pages first."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
