"""Options of the subcommands that make no sense are refused with a message that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.commands import shortened

WRONG = [
    ("hostile", "--count", "0"),
    ("hostile", "--count", "-3"),
    ("hostile", "--seconds", "0"),
    ("hostile", "--jobs", "-1"),
    ("hostile", "--memory", "0"),
    ("hostile", "--memory", "-1"),
    ("hostile", "--memory", "1"),
    ("hostile", "--timeout", "0"),
    ("hostile", "--timeout", "-1"),
    ("run", "--jobs", "-1"),
    ("run", "--timeout", "0"),
    ("fuzz", "--jobs", "0"),
    ("fuzz", "--seconds", "nan"),
    ("fuzz", "--programs", "0"),
    ("fuzz", "--store", "/dev/null/store"),
    ("hostile", "--store", "/dev/null/store"),
    ("mutants", "--share", "8/8"),
    ("mutants", "--changed", "nosuchrev"),
]


@pytest.mark.parametrize(("name", "option", "value"), WRONG)
def test_senseless_value_is_a_wrong_call(command: Any, name: str, option: str, value: str) -> None:
    status, _, errors = command(name, "--device=reference", f"{option}={value}")
    assert status == 2
    assert option in errors


IGNORED = [
    ("bench --quick --batch=2", "--batch, --quick without --models"),
    ("bench --profile --threads=1", "--profile, --threads without --models"),
    ("bench --convolutions", "--convolutions without --models"),
    ("bench --markdown=table.md", "--markdown without --models"),
    ("bench --models --check --peaks=1e9,1e9", "--peaks, --check with --models"),
    ("bench --models --profile --vs=onnxruntime", "--vs with --models --profile"),
    ("bench --models --profile --html=page.html", "--html with --models --profile"),
    ("bench --models --convolutions --quick", "--quick with --models --convolutions"),
    ("fuzz --device=reference --programs=1 --seconds=5", "--seconds with --programs"),
    ("fuzz --device=reference --replay=found.json --seed=1 --op=Add", "--seed, --op with --replay"),
    ("mutants --framework --share=0/8 --changed=HEAD", "--share, --changed with --framework"),
    ("mutants --list --device=cpu", "--device with --list"),
]


@pytest.mark.parametrize(("call", "named"), IGNORED)
def test_option_that_would_change_nothing_is_a_wrong_call(command: Any, call: str, named: str) -> None:
    status, _, errors = command(*call.split())
    assert (status, errors) == (2, f"conformance: {named}: no effect; only options that have one are allowed\n")


@pytest.mark.parametrize("call", ["bench --json", "report --html", "report --markdown"])
def test_file_without_a_folder_is_a_wrong_call(command: Any, call: str, tmp_path: Path) -> None:
    name, option = call.split()
    files = ["report.json"] if name == "report" else []
    status, _, errors = command(name, *files, f"{option}={tmp_path / 'absent' / 'file'}")
    assert status == 2
    assert "its folder does not exist" in errors


@pytest.mark.parametrize("option", ["", "--markdown=list.md", "--badges=badges"])
def test_report_of_benches_alone_is_for_a_page(command: Any, option: str) -> None:
    bench = Path(__file__).parents[1] / "results" / "models-CPU-1.json"
    status, _, errors = command("report", str(bench), *filter(None, [option]))
    assert (status, "1 bench without a report of a run; --html alone is required" in errors) == (2, True)


def test_name_that_no_measurement_has_is_a_wrong_call(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_CLEARED", "{}")
    status, _, errors = command("bench", "--device=reference", "-k", "matmull")
    assert status == 2
    assert "-k 'matmull': no measurement has such a name" in errors


def test_list_of_mutants_has_those_that_are_selected(command: Any) -> None:
    _, output, _ = command("mutants", "--list", "--name=leak,gather-clamps")
    assert [line.split(":")[0] for line in output.splitlines()] == ["leak", "gather-clamps"]


def test_list_of_the_framework_has_those_that_are_selected(command: Any) -> None:
    _, output, _ = command("mutants", "--framework", "--list", "--name=stale-sizes")
    assert [line.split(":")[0] for line in output.splitlines()] == ["stale-sizes"]


@pytest.mark.parametrize(
    ("name", "option"), [("hostile", "--seed=commit"), ("fuzz", "--seed=commit"), ("mutants", "--share=commit/8")]
)
def test_commit_outside_of_a_checkout_is_a_wrong_call(
    command: Any, name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from timberframe_conformance.commit import commit_number

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    commit_number.cache_clear()
    status, _, errors = command(name, "--device=reference", option)
    commit_number.cache_clear()
    assert status == 2
    assert option.split("=")[0] in errors


@pytest.mark.slow
def test_hostile_outside_of_a_checkout_draws_a_seed(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from timberframe_conformance.commit import commit_number

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    commit_number.cache_clear()
    hostile = ("hostile", "--device=reference", "--count=1", "--jobs=1", f"--store={tmp_path / 'store'}")
    _, output, _ = command(*hostile)
    commit_number.cache_clear()
    assert "mutated files of seed " in output
    assert "mutated files of seed 0\n" not in output
    assert "1 file in" in output


def test_list_of_the_mutants_of_the_framework(command: Any) -> None:
    status, output, _ = command("mutants", "--framework", "--list")
    assert status == 0
    assert "stale-sizes: a run with other sizes" in output


def test_oracle_tensorflow_names_the_option_that_it_needs(command: Any) -> None:
    status, _, errors = command("fuzz", "--device=reference", "--oracles=tensorflow")
    assert status == 2
    assert "--vs tensorflow" in errors


def test_long_messages_are_cut_after_a_word() -> None:
    assert shortened("alpha beta gamma", 13) == "alpha..."
    assert shortened("alpha beta", 13) == "alpha beta"
