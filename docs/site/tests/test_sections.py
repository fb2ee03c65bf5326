"""What the site's search knows of a page."""

from __future__ import annotations

from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes

from sections import Section, sections


def _section(name: str, *children: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title("", name), *children, ids=[name.lower()])


def _page(*children: nodes.Node) -> nodes.document:
    page = new_document("page.md")
    page += children
    return page


def _text(text: str) -> nodes.paragraph:
    return nodes.paragraph("", text)


def test_a_section_has_the_text_that_is_not_of_one_below_it() -> None:
    page = _page(_section("Page", _text("first\nline"), _section("Part", _text("below"))))
    assert list(sections(page)) == [
        Section("", "Page", (), "first line"),
        Section("part", "Part", ("Page",), "below"),
    ]


def test_a_documented_name_is_a_section_of_its_own() -> None:
    signature = addnodes.desc_signature("", "f(x)", ids=["tf.f"])
    name = addnodes.desc("", signature, addnodes.desc_content("", _text("what it does")))
    page = _page(_section("Names", _text("intro"), name))
    assert list(sections(page))[1:] == [Section("tf.f", "tf.f", ("Names",), "what it does", True)]


def test_cells_of_a_table_are_words_apart() -> None:
    cells = [nodes.entry("", _text(text)) for text in ("one", "two")]
    table = nodes.table("", nodes.tgroup("", nodes.tbody("", nodes.row("", *cells)), cols=2))
    assert [s.text for s in sections(_page(_section("Page", table)))] == ["one two"]
