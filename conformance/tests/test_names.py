"""Names that `--device` takes: devices of this process by index or by hardware, and targets."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import timberframe_sdk as sdk
from timberframe_conformance.case import Case
from timberframe_conformance.cli import _parser, main
from timberframe_conformance.judge import judge_case
from timberframe_conformance.names import read_name
from timberframe_conformance.options import Options
from timberframe_conformance.repro import case_script, one_line
from timberframe_conformance.target import NoSuchDeviceError, open_target
from timberframe_core.plugin import loader
from timberframe_sdk.numpy_device import NumpyDevice


class ManyKinds(NumpyDevice):
    """A device of a plugin that knows two kinds of hardware."""

    type = "MANYKINDS"

    def __init__(self, kind: str, size: str) -> None:
        super().__init__()
        self.attributes = sdk.DeviceAttributes(memory=1 << 30, model=kind, details={sdk.HARDWARE: kind, "size": size})


@pytest.fixture
def _plugin() -> Iterator[None]:
    def timberframe_devices(config: Any) -> list[Any]:
        given = sdk.device_options(
            config, "MANYKINDS", {sdk.HARDWARE: ("left", "right"), "size": None, "library": None}
        )
        return [ManyKinds(given[sdk.HARDWARE], str(given.get("size")))] if sdk.HARDWARE in given else []

    hooks = SimpleNamespace(timberframe_devices=sdk.hookimpl(timberframe_devices), timberframe_contract=sdk.CONTRACT)
    sdk.register_plugin("manykinds", hooks)
    yield
    loader.registry.remove("manykinds")


@pytest.mark.parametrize(
    ("text", "spec", "choice"),
    [
        ("acme", "/device:ACME:0", ""),
        ("acme:2", "/device:ACME:2", ""),
        ("/device:ACME:2", "/device:ACME:2", ""),
        ("ort:CPUExecutionProvider", "/device:ORT:0", "CPUExecutionProvider"),
    ],
)
def test_a_name_is_a_type_and_an_index_or_a_choice(text: str, spec: str, choice: str) -> None:
    assert (read_name(text).spec, read_name(text).choice) == (spec, choice)


@pytest.mark.usefixtures("_plugin")
def test_the_choice_and_the_options_reach_the_plugin() -> None:
    target = open_target(Options("manykinds:right", settings=(("size", "7"),)))
    assert (target.spec, target.device.attributes.model) == ("/device:MANYKINDS:0", "right")
    assert target.device.attributes.details["size"] == "7"


@pytest.mark.usefixtures("_plugin")
def test_a_choice_that_the_plugin_does_not_know_is_refused_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "manykinds:middle"]) == 2
    assert "device option hardware is 'middle'; one of 'left', 'right' is required" in capsys.readouterr().err


def test_a_device_without_a_choice_is_not_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "reference:fast"]) == 2
    assert "REFERENCE devices have no choice of hardware; reference:INDEX is required" in capsys.readouterr().err


def test_an_unknown_name_has_the_rule_of_names_in_its_error() -> None:
    with pytest.raises(NoSuchDeviceError, match=r"TYPE:CHOICE .* URL of a target is required \(process:"):
        open_target(Options("nobody:fast"))


def test_options_of_a_plugin_are_refused_for_a_target() -> None:
    with pytest.raises(NoSuchDeviceError, match="is of a target; options size are for plugins alone"):
        open_target(Options("process:1", settings=(("size", "7"),)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--option", "size"], "--option size: NAME=VALUE is required"),
        (["--option", "a=1", "--option", "a=2"], "--option a is given twice"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "cpu", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_options_survive_the_way_to_worker_processes() -> None:
    options = Options("acme:x", settings=(("library", "/a b.so"), ("n", "1")))
    assert Options.from_json(options.to_json()) == options


def test_commands_and_scripts_of_cases_have_the_options() -> None:
    options = Options("acme:y", settings=(("library", "/a b.so"), ("n", "1")), profile="p.toml")
    given = "--device=acme:y --library '/a b.so' --option n=1 --profile p.toml"
    assert one_line("x", options) == f"conformance repro {given} 'x'"
    assert "settings=(('library', '/a b.so'), ('n', '1')), profile='p.toml')" in case_script("x", options)


def _commands() -> dict[str, Any]:
    found = next(a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {name: p for name, p in found.choices.items() if "--device" in p.format_help()}


@pytest.mark.parametrize("name", _commands())
def test_every_command_with_a_device_takes_its_options(name: str) -> None:
    shown = _commands()[name].format_help()
    wanted = ["--library FILE", "--option NAME=VALUE"]
    wanted += [] if name in ("bench", "hostile") else ["--profile FILE"]  # which judge no numbers
    assert [w for w in wanted if w not in shown] == []


def test_options_without_a_device_are_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutants", "--option", "size=1"]) == 2
    assert "option size of a device without --device" in capsys.readouterr().err


def test_repro_heeds_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text("flushes_subnormals = 1\n")
    assert main(["repro", "--device=reference", f"--profile={profile}", "forward/Tanh/float32/x#0"]) == 2
    assert "flushes_subnormals is 1; true or false is required" in capsys.readouterr().err


def test_what_others_computed_is_a_fallback() -> None:
    target = open_target(Options("cpu"))

    def run(_: Any) -> None:
        sdk.note_fallback("CPU", "Relu", "another provider")

    result = judge_case(Case("forward", "Relu", (("T", "float32"),), "given-away", run), target)
    assert (result.verdict, result.fallback, list(result.kernels)) == ("pass", True, ["another provider (fallback)"])
    other = judge_case(Case("forward", "Tanh", (("T", "float32"),), "own", lambda _: None), target)
    assert not other.fallback
