"""What the site's search reads: title and text of every section and every documented name, as one file of JavaScript.

Sphinx's own search knows pages only, lists those with equal points by title, and reads the pages again to show their
text, which browsers refuse to pages that are files. `static/search.js` searches this file instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx


class Section(NamedTuple):
    """A part of a page: its anchor, its title, the titles above it, its text, whether it documents a name."""

    anchor: str
    title: str
    path: tuple[str, ...]
    text: str
    is_name: bool = False


def sections(node: nodes.Element, path: tuple[str, ...] = ()) -> Iterator[Section]:
    """Yields the sections below a node, each with the text that is not part of another one."""
    for child in node.children:
        if isinstance(child, nodes.section):
            title = child.next_node(nodes.title)
            name = title.astext() if title else ""
            yield Section(child["ids"][0] if path else "", name, path, _text(child))
            yield from sections(child, (*path, name))
        elif isinstance(child, addnodes.desc):
            signature, content = child[0], child[-1]
            if signature.get("ids") and isinstance(content, nodes.Element):
                yield Section(signature["ids"][0], signature["ids"][0], path, _text(content), True)
                yield from sections(content, path)
        elif isinstance(child, nodes.Element) and not isinstance(child, nodes.TextElement):
            yield from sections(child, path)


def _text(node: nodes.Element) -> str:
    """Returns the text of a section in one line, without its title and without what is a section of its own."""
    if isinstance(node, nodes.TextElement):
        return " ".join(node.astext().split())
    others = (nodes.section, nodes.title, nodes.Invisible, addnodes.desc, addnodes.toctree)
    parts = (_text(c) for c in node.children if isinstance(c, nodes.Element) and not isinstance(c, others))
    return " ".join(filter(None, parts))


def _replace_search(app: Sphinx) -> None:
    """Makes Sphinx write no index of its own; the page for searches is a template of ours."""
    app.builder.search = False
    app.config.html_additional_pages = {**app.config.html_additional_pages, "search": "search.html"}


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None:
        return
    found = [
        (app.builder.get_target_uri(page) + (f"#{s.anchor}" if s.anchor else ""), s.title, s.path, s.text, s.is_name)
        for page in sorted(app.env.found_docs - {app.config.root_doc})  # which is a list of the others
        for s in sections(app.env.get_doctree(page))
    ]
    text = f"const SECTIONS = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n"
    Path(app.outdir, "_static/sections.js").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes Sphinx write the sections when it is done with the pages."""
    app.connect("builder-inited", _replace_search)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
