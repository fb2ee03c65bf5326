"""The list of pages in docs/README.md is the navigation of the site."""

from __future__ import annotations

import pytest

from navigation import ROOT, groups, toctrees, with_generated

PAGE = """# All

[before](zero.md)

## Start

- [One](one.md): and [two](../two/README.md#part), [elsewhere](https://example.com/three.md).

## Use

- [Four](four.md)
"""


def test_headings_are_groups_and_links_their_pages() -> None:
    assert groups(PAGE, "docs") == {"Start": ["docs/one"], "Use": ["docs/four"]}


def test_a_group_begins_with_what_is_generated_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navigation.GENERATED", {"Use": {"docs/reference/ops": "all ops"}})
    assert ":caption: Use\n\n/docs/reference/ops\n/docs/four\n" in toctrees(PAGE, "docs")


def test_a_generated_page_is_linked_from_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navigation.GENERATED", {"Use": {"docs/reference/ops": "all ops"}})
    assert "## Use\n\n- [](/docs/reference/ops.md): all ops.\n- [Four]" in with_generated(PAGE)


def test_every_page_is_in_a_group() -> None:
    found = groups((ROOT / "docs/README.md").read_text(), "docs")
    listed = {f"{page}.md" for pages in found.values() for page in pages}
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - listed == {"docs/README.md"}
