"""The navigation of the site: the headings and links of docs/README.md, which is therefore the one list of pages.

Each heading of level 2 is a group, each link to a Markdown file below it a page. Sphinx warns of a page in no group.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)\.md\)")
GENERATED: dict[str, tuple[str, ...]] = {
    "Reference": ("docs/reference/ops/index", "docs/reference/accuracy", "docs/reference/api/index")
}
"""By group, pages that are generated, which a page in the repository cannot link."""


def groups(text: str, folder: str) -> dict[str, list[str]]:
    """The pages of each group, as paths from the repository's root without suffix."""
    _, *parts = _HEADING.split(text)
    return {
        heading: [posixpath.normpath(posixpath.join(folder, link)) for link in dict.fromkeys(_LINK.findall(body))]
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def toctrees(text: str, folder: str) -> str:
    """Directives for what `groups` finds and what is generated."""
    found = groups(text, folder)
    blocks = []
    for heading, pages in found.items():
        lines = "\n".join(f"/{page}" for page in (*GENERATED.get(heading, ()), *pages))
        blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{lines}\n```\n")
    return "\n".join(blocks)


def _add(app: Sphinx, page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        source[0] += "\n" + toctrees(source[0], posixpath.dirname(page))


def setup(app: Sphinx) -> dict[str, bool]:
    """Has Sphinx add the navigation to the first page."""
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
