"""The application as hosts of many replicas take it, and what is said where there is no such host."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from timberframe_core.errors import UnavailableError
from timberframe_serving import flags
from timberframe_serving.replicas import Hosted, on_ray


def given(folder: Path) -> list[str]:
    """Returns flags that serve a folder's model."""
    return [f"--model_base_path={folder}", "--model_name=double", "--rest_api_port=8501"]


def test_a_host_of_asgi_starts_asks_and_ends_it(helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    application = Hosted(given(tmp_path / "double"))
    told: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def ask() -> None:
        body = json.dumps({"instances": [[1, 2]]}).encode()
        come: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        await come.put({"type": "http.request", "body": body, "more_body": False})
        scope = {"type": "http", "method": "POST", "path": "/v1/models/double:predict", "headers": []}
        await application(scope, come.get, send)

    async def main() -> None:
        signs: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        life = asyncio.create_task(application({"type": "lifespan"}, signs.get, send))
        await signs.put({"type": "lifespan.startup"})
        while not told:
            await asyncio.sleep(0.01)
        await ask()
        await signs.put({"type": "lifespan.shutdown"})
        await asyncio.wait_for(life, 20)

    asyncio.run(main())
    assert [m["type"] for m in told] == [
        "lifespan.startup.complete", "http.response.start", "http.response.body", "lifespan.shutdown.complete",
    ]  # fmt: skip
    assert json.loads(told[2]["body"]) == {"predictions": [[2.0, 4.0]]}


def test_without_ray_serve_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"pip install 'timberframe-serving\[ray\]' is required"):
        on_ray([*given(tmp_path), "--ray=2"])


def test_numbers_of_replicas_are_read_and_wrong_ones_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert flags.parse([*given(tmp_path), "--ray=2"]).ray == (2, 2)
    assert flags.parse([*given(tmp_path), "--ray=1:4"]).ray == (1, 4)
    for wrong in ("0", "3:2", "many", "1:x", "-1"):
        with pytest.raises(SystemExit):
            flags.parse([*given(tmp_path), f"--ray={wrong}"])
        assert "a number of replicas, or MIN:MAX, is required" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        flags.parse([f"--model_base_path={tmp_path}", "--ray=2"])
    assert "--rest_api_port is required for --ray" in capsys.readouterr().err
