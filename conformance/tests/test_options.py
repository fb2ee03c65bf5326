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
    ("mutants", "--eighth", "9"),
    ("mutants", "--changed", "nosuchrev"),
]


@pytest.mark.parametrize(("name", "option", "value"), WRONG)
def test_senseless_value_is_a_wrong_call(command: Any, name: str, option: str, value: str) -> None:
    status, _, errors = command(name, "--device=reference", f"{option}={value}")
    assert status == 2
    assert option in errors


@pytest.mark.parametrize(
    ("name", "option"), [("hostile", "--seed=commit"), ("fuzz", "--seed=commit"), ("mutants", "--eighth=-1")]
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
