"""A page in one file: style, data and scripts are in it, and nothing is fetched."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Browsers refuse everything that would come over a network."""


def asset(package: str, name: str) -> str:
    """Returns the text of a file that a package has beside its modules, such as a style or a script."""
    return (files(package) / name).read_text(encoding="utf-8")


def page(title: str, body: str, data: Any = None, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """Returns a whole page, light or dark as the system asks, with a switch.

    title: plain text. body: HTML. data: what scripts get as `page.data`, anything that JSON holds without NaN. styles,
    scripts: texts of CSS and JavaScript, added to those of every page, which define `page`.
    """
    own = "timberframe_core.drawing"
    known = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    code = "\n".join(f"<script>\n{_closed(text, 'script')}</script>" for text in (asset(own, "page.js"), *scripts))
    style = "\n".join([asset(own, "page.css"), *styles])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{html.escape(title)}</title>
<style>
{_closed(style, "style")}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><h1>{html.escape(title)}</h1><button id="theme" type="button"></button></header>
<main id="main">
{body}
</main>
<script id="data" type="application/json">{known}</script>
{code}
</body>
</html>
"""


def _closed(text: str, tag: str) -> str:
    """Returns a text that an element of this tag may have: its end is not in it."""
    if f"</{tag}" in text.lower():
        raise ValueError(f"a {tag} contains '</{tag}', which would end it; it must be written in another way")
    return text
