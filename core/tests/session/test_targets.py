"""Targets of sessions: found by scheme, opened for each session, closed with it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.runtime.devices import devices_for
from timberframe_core.runtime.targets import register_target


class Recorded:
    """A target of this process's devices that writes down what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def open(self, address: str, config: tf.SessionConfig) -> Recorded:
        self.calls.append(("open", address))
        self.config = config
        return self

    def devices(self) -> Sequence[Any]:
        return devices_for(self.config)

    def close(self) -> None:
        self.calls.append("close")

    def reset(self, address: str, containers: Sequence[str]) -> None:
        self.calls.append(("reset", address, list(containers)))


RECORDED = Recorded()
register_target("recorded", RECORDED)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    RECORDED.calls.clear()


@pytest.mark.parametrize(
    ("url", "address"), [("recorded:a/b", "a/b"), ("recorded://host:2222", "host:2222"), ("recorded", "")]
)
def test_a_target_gets_the_address_in_its_url(url: str, address: str) -> None:
    tf.Session(url)
    assert RECORDED.calls == [("open", address)]


def test_a_session_runs_on_the_devices_of_its_target() -> None:
    with tf.Graph().as_default(), tf.Session("recorded:x") as session:
        assert session.run(tf.constant(1.0) + 1) == 2


def test_a_target_is_closed_with_its_session() -> None:
    tf.Session("recorded:x").close()
    assert RECORDED.calls[-1] == "close"


def test_a_target_is_closed_once() -> None:
    session = tf.Session("recorded:x")
    session.close()
    session.close()
    assert RECORDED.calls.count("close") == 1


def test_reset_closes_the_sessions_of_the_target_and_tells_it_the_containers() -> None:
    session, other = tf.Session("recorded:x"), tf.Session()
    tf.Session.reset("recorded:x", ["experiment"])
    assert (session.closed, other.closed) == (True, False)
    assert RECORDED.calls[-1] == ("reset", "x", ["experiment"])


def test_an_unknown_scheme_lists_what_is_installed_and_invents_no_package() -> None:
    with pytest.raises(tf.errors.NotFoundError) as raised:
        tf.Session("tree://a")
    assert "session target 'tree://a': no installed package offers targets 'tree'" in str(raised.value)
    assert "there are '' (this process)" in str(raised.value)
    assert "'recorded:'" in str(raised.value)
    assert "timberframe-" not in str(raised.value)


@pytest.mark.parametrize("url", ["://a", "2", "Acme:1", " "])
def test_a_malformed_target_is_refused(url: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is malformed; '' "):
        tf.Session(url)


def test_a_scheme_is_registered_once() -> None:
    with pytest.raises(tf.errors.AlreadyExistsError, match="'recorded': is registered already"):
        register_target("recorded", Recorded())


def test_a_target_without_its_functions_is_refused() -> None:
    with pytest.raises(tf.errors.InternalError, match="'empty': has no function open, reset"):
        register_target("empty", object())  # type: ignore[arg-type]  # that is the mistake


PACKAGE = """
    print("loaded")
    from timberframe_core.runtime.local_target import LocalTarget
    def open(address, config):
        return LocalTarget(config)
    def reset(address, containers):
        pass
"""


@pytest.mark.slow
def test_an_installed_target_is_loaded_when_a_session_first_uses_it(tmp_path: Path) -> None:
    (tmp_path / "far.py").write_text(textwrap.dedent(PACKAGE))
    information = tmp_path / "far-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: far\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[timberframe.targets]\nfar = far\n")
    program = """
        import timberframe as tf
        tf.Session()
        print("local")
        with tf.Session("far:1") as session:
            print(session.run(tf.constant(1.0) + 1))
    """
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["local", "loaded", "2.0"]
