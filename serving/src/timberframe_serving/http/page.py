"""The page at `/`: models, versions, states, and a form to try a signature."""

from __future__ import annotations

from importlib.resources import files

from timberframe_serving.http.messages import Response

_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


def page() -> Response:
    """Returns the page; what it shows it asks of the other paths, with the key that the visitor types."""
    text = files("timberframe_serving.http").joinpath("page.html").read_bytes()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", _POLICY)]
    return Response(text, headers=headers)
