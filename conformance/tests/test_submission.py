"""Submissions: what `conformance run --submit` writes, and what `conformance verify` refuses."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.profile import load_profile
from timberframe_conformance.reports.environment import environment
from timberframe_conformance.reports.submission import MANIFEST, write_submission
from timberframe_conformance.reports.summary import Run

WAIVER = """
[[waiver]]
cases = "forward/Tanh/*"
reason = "fixed in driver 7"
expires = 2099-01-15
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission of three cases, one of them waived, with figures of a bench."""
    profile, bench, folder = tmp_path / "acme.toml", tmp_path / "times.json", tmp_path / "submitted"
    profile.write_text(WAIVER)
    bench.write_text('{"times": {"matmul 64": 1e-6}}')
    folder.mkdir()
    results = [
        Result("forward/Relu/float32/x", "forward", "Relu", {"T": "float32"}, "pass", 0.5, 1.0, level="core"),
        Result("forward/Relu/float64/x", "forward", "Relu", {"T": "float64"}, "fail", 9.0, 1.0),
        Result("forward/Tanh/float32/x", "forward", "Tanh", {"T": "float32"}, "waived", 9.0, 1.0, level="training"),
    ]
    device = {"spec": "/device:ACME:0", "unsupported_ops": {}, "dtypes": []}
    made = Run(device, environment(), results, 1.0, profile=load_profile(profile).as_dict())
    write_submission(folder, made, profile, bench)
    return folder


def forge(folder: Path, name: str, old: str, new: str) -> None:
    """Changes a file, and its entry in the manifest so that the file is the one listed."""
    content = (folder / name).read_text()
    assert old in content
    (folder / name).write_text(content.replace(old, new))
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_submission_is_verified(command: Any, folder: Path) -> None:
    status, output, errors = command("verify", str(folder))
    assert (status, errors) == (0, "")
    assert output == f"{folder}: /device:ACME:0, 3 cases, core reached: verified\n"


@pytest.mark.parametrize("name", ["report.json", "bench.json", "profile.toml"])
def test_a_changed_number_is_refused(command: Any, folder: Path, name: str) -> None:
    old = (folder / name).read_text()
    at = next(i for i in reversed(range(len(old))) if old[i].isdecimal())
    (folder / name).write_text(old[:at] + str((int(old[at]) + 1) % 8) + old[at + 1 :])
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert f"{name} was changed" in output


def test_a_total_that_its_cases_do_not_give_is_refused(command: Any, folder: Path) -> None:
    forge(folder, "report.json", '"fail": 1', '"fail": 0')
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "report.json has summary fail 0; its cases give 1" in output


def test_a_pass_with_more_than_its_limit_is_refused(command: Any, folder: Path) -> None:
    forge(folder, "report.json", '"max_ulp": 0.5', '"max_ulp": 1.5')
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "forward/Relu/float32/x passes with an error of 1.5 ULP; at most its limit of 1.0 is required" in output


def test_a_case_that_is_there_twice_is_refused(command: Any, folder: Path) -> None:
    forge(folder, "report.json", '"forward/Relu/float64/x"', '"forward/Relu/float32/x"')
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "forward/Relu/float32/x is there 2 times; each case once is required" in output


def test_a_missing_waiver_is_refused(command: Any, folder: Path) -> None:
    forge(folder, "profile.toml", "Tanh", "Sigmoid")
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "forward/Tanh/float32/x is waived; a waiver of profile.toml that covers it is required" in output
    assert "report.json has waivers" in output


@pytest.mark.parametrize("name", ["report.json", "bench.json", "profile.toml"])
def test_a_missing_file_is_refused(command: Any, folder: Path, name: str) -> None:
    (folder / name).unlink()
    status, output, errors = command("verify", str(folder))
    assert status in (1, 2)
    assert name in output + errors


def test_a_file_that_is_not_listed_is_refused(command: Any, folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["sha256"]["bench.json"]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "bench.json is not listed" in output


@pytest.mark.parametrize("what", ["SUITE_VERSION", "suite_hash"])
def test_another_suite_is_refused(command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    here: Any = "99" if what == "SUITE_VERSION" else lambda: "0123"
    monkeypatch.setattr(f"timberframe_conformance.reports.submission.{what}", here)
    status, output, _ = command("verify", str(folder))
    assert status == 1
    assert "which verifies it" in output


def test_a_folder_without_a_submission_is_a_wrong_call(command: Any, tmp_path: Path) -> None:
    status, _, errors = command("verify", str(tmp_path))
    assert status == 2
    assert MANIFEST in errors


@pytest.mark.parametrize("text", ["[]", "{}", '{"cases": [{"id": 1}]}', "no JSON"])
@pytest.mark.parametrize("name", ["report.json", "submission.json"])
def test_a_file_of_another_kind_is_refused(command: Any, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    status, output, errors = command("verify", str(folder))
    assert status in (1, 2)
    assert name in output + errors


def test_a_part_of_the_suite_is_not_submitted(command: Any, tmp_path: Path) -> None:
    status, _, errors = command("run", "--device=reference", "--op=Relu", f"--submit={tmp_path}")
    assert status == 2
    assert "leave out --op" in errors


@pytest.mark.slow
def test_a_run_that_is_submitted_can_be_verified(command: Any, tmp_path: Path) -> None:
    status, _, _ = command("run", "--device=reference", "--level=core", "--jobs=2", f"--submit={tmp_path / 'new'}")
    assert status in (0, 1)
    status, output, _ = command("verify", str(tmp_path / "new"))
    assert (status, output.endswith(": verified\n")) == (0, True)


@pytest.mark.parametrize("name", ["report.json", "submission.json"])
def test_json_that_is_nested_too_deep_is_refused(command: Any, folder: Path, name: str) -> None:
    (folder / name).write_text("[" * 100_000 + "]" * 100_000)
    status, output, errors = command("verify", str(folder))
    assert status in (1, 2)
    assert name in output + errors
