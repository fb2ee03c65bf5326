"""A device that needs no plugin package, and the same as an installed plugin for worker processes."""

from __future__ import annotations

import base64
import dataclasses
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_sdk.testing import reference_device
from timberframe_sdk.testing.installed import installed_plugin


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path of this process and its children: an installed package that names the reference device."""
    folder = tmp_path_factory.mktemp("plugins")
    with installed_plugin(folder, "reference", reference_device.__name__):
        yield folder


@pytest.fixture(scope="module")  # plugins that tests of other files add make new devices
def target(plugin_path: Path) -> Target:
    """The reference device."""
    if "reference" not in loader.registry.plugins:
        loader.registry.add("reference", reference_device)
    return open_target(Options("reference"))


@pytest.fixture
def redefine() -> Iterator[Callable[..., None]]:
    """``redefine("Tanh", gradient=...)`` changes the definition of an op until the test ends."""
    right = []

    def change(name: str, **changes: Any) -> None:
        right.append(registry.substitute(dataclasses.replace(registry.get(name), **changes)))

    yield change
    for op in reversed(right):
        registry.substitute(op)


@pytest.fixture
def command(target: Target, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command `conformance` in this process: ``status, output, errors = command("list", ...)``."""
    from timberframe_conformance.cli import main

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments)
        except SystemExit as e:
            status = int(e.code or 0)
        output, errors = capsys.readouterr()
        return status, output, errors

    return run


def _pipe() -> tuple[int, int]:
    """Returns a pipe whose numbers are above those that a shell redirects."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in low)
    for fd in low:
        os.close(fd)
    return high[0], high[1]


class Browser:
    """A headless Chromium, driven through its debugging protocol on a pair of pipes.

    errors: what pages wrote to the console as errors and warnings, exceptions, and requests.
    """

    def __init__(self, program: str, folder: Path) -> None:
        commands, self._commands = _pipe()
        self._answers, answers = _pipe()
        arguments = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        script = f'exec "$@" 3<&{commands} 4>&{answers}'  # the protocol's pipes are 3 and 4
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *arguments], pass_fds=(commands, answers), stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._numbers, self._rest, self._session = itertools.count(1), b"", ""
        self.errors: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns the result of one command."""
        answer = self._answer(method, parameters)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != number:
            self._notice(answer)
        return answer

    def open(self, page: Path, width: int = 1400, height: int = 900, dark: bool = False) -> float:
        """Opens a file, and waits until it is loaded; the milliseconds from the start of loading to its end."""
        self.errors.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + 60
        while self.evaluate("document.readyState") != "complete" or self.evaluate("location.href") == "about:blank":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.02)
        self.settle()
        return float(self.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression, a promise awaited; None while the page
        gives way to another one.
        """
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self._answer("Runtime.evaluate", given)
        if "navigated" in answer.get("error", {}).get("message", ""):
            return None
        assert "error" not in answer, answer
        done = answer["result"]
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def settle(self) -> None:
        """Waits until what is to be drawn is drawn."""
        self.evaluate("new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(f, 30))))")

    def screenshot(self, path: Path) -> None:
        """What is in view, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        os.close(self._commands)
        self._process.terminate()
        self._process.wait()
        os.close(self._answers)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._answers, 1 << 20)
            assert part, "Chromium has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _notice(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.errors.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith(
            ("file:", "about:", "data:")
        ):
            self.errors.append(f"request for {given['request']['url']}")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium for pages; without one the test is skipped."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    started = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()
