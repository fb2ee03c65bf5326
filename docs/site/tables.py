"""Figures with their units, dates and names in tables stay on one line."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

SHORT = 16
"""Characters of a cell that is not broken into lines."""


def _mark(app: Sphinx, page: nodes.document) -> None:
    for cell in page.findall(nodes.entry):
        if len(cell.astext()) <= SHORT:
            cell["classes"].append("short")


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes Sphinx mark the short cells of tables, for site.css."""
    app.connect("doctree-read", _mark)
    return {"parallel_read_safe": True}
