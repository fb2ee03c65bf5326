"""The page at `/`, as a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def test_the_page_asks_nobody_else(doubling: Any) -> None:
    status, body, headers = doubling.http("/")
    assert status == 200
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert re.findall(rb"https?://", body) == []


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_models_and_asks_a_signature(doubling: Any, tmp_path: Path) -> None:
    body = doubling.http("/")[1].decode()
    clicked = body.replace("tick();\nset", 'tick().then(() => at("ask").click());\nset')
    assert clicked != body
    file = Path(__file__).parents[1] / "src/timberframe_serving/http/page.html"
    assert file.read_text() == body
    from timberframe_serving.http import application
    from timberframe_serving.http.messages import Response

    patched = pytest.MonkeyPatch()
    patched.setattr(application, "page", lambda: Response(clicked.encode(), headers=[(b"content-type", b"text/html")]))
    try:
        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        command += ["--virtual-time-budget=8000", "--dump-dom", doubling.url + "/"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    finally:
        patched.undo()
    assert "<td>double</td><td>1</td>" in shown
    assert '<td class="READY">READY</td>' in shown
    assert "x: float (?, 2) \u2192 y: float (?, 2)" in shown
    assert '{"outputs":[[0.0,0.0]]}' in shown
