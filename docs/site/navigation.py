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
GENERATED: dict[str, dict[str, str]] = {
    "Reference": {
        "docs/reference/ops/index": "each op's signature, dtypes on each device, gradient, accuracy, and an example",
        "docs/reference/accuracy": "what accuracy each op was measured to have on which device",
        "docs/reference/api/index": "`tf.*`, the SDK and the core, from docstrings",
    }
}
"""By group, pages that are generated, which a page in the repository cannot link, and what they have."""


def groups(text: str, folder: str) -> dict[str, list[str]]:
    """Returns the pages of each group, as paths from the repository's root without suffix."""
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


def with_generated(text: str) -> str:
    """Returns the list of pages, with those that are generated first in their groups."""
    for heading, pages in GENERATED.items():
        links = "".join(f"- [](/{page}.md): {what}.\n" for page, what in pages.items())
        text = text.replace(f"## {heading}\n\n", f"## {heading}\n\n{links}", 1)
    return text


def _add(app: Sphinx, page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        source[0] = f"{with_generated(source[0])}\n{toctrees(source[0], posixpath.dirname(page))}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes Sphinx add the navigation to the first page."""
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
