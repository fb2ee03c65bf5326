"""ONNX Runtime's CPU provider judged by the suite, and scripts of its failures in the words of its vendor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_conformance.cli import main
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import open_target
from timberframe_core.ops.definition import registry

ROOT = Path(__file__).parents[3]
PROFILE = Path(__file__).parents[1] / "profiles/CPUExecutionProvider.toml"
WITHOUT_CHANNELS = "forward/MaxPool/float32/ksize=(1,2,2,1)-strides=(1,2,2,1)-padding=VALID-data_format=NHWC-2x4x4x0#28"
SIGMOID = "forward/Sigmoid/float32/1031-fortran-special-dynamic#13"


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from timberframe_conformance.cli import main; sys.exit(main())"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute on a quiet machine of two cores
def test_level_core_has_no_failure_but_those_that_the_profile_explains() -> None:
    done = conformance("run", "--device=ort:CPUExecutionProvider", "--level=core", f"--profile={PROFILE}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "waived" in done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("case", [WITHOUT_CHANNELS, SIGMOID])
def test_the_script_of_a_failure_shows_it_without_timberframe(case: str, tmp_path: Path) -> None:
    script = conformance("repro", "--device=ort:CPUExecutionProvider", case)
    assert script.returncode == 0, script.stderr
    assert "timberframe" not in script.stdout.replace("timberframe_core.", "").split('"""')[2]
    (tmp_path / "case.py").write_text(script.stdout)
    done = subprocess.run([sys.executable, str(tmp_path / "case.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    wrong = re.search(r"elements of output_0( that are looked at)? are wrong", done.stdout)
    assert wrong or "invalid channel count" in done.stdout


@pytest.mark.slow
def test_a_case_without_a_model_has_a_script_of_the_suite(tmp_path: Path) -> None:
    script = conformance("repro", "--device=ort:CPUExecutionProvider", "device/Device/-/attributes")
    assert script.returncode == 0, script.stderr
    assert "timberframe" in script.stdout


def test_what_another_provider_computes_is_a_fallback_and_counts_for_no_level() -> None:
    settings = (("fallback", "allowed"),)
    target = open_target(Options("ort:AzureExecutionProvider", settings=settings))
    case = next(c for c in SUITES["forward"](target, [registry.get("Relu")]) if dict(c.types)["T"] == "float32")
    result = judge_case(case, target)
    assert (result.verdict, result.fallback) == ("pass", True)
    assert list(result.kernels) == ["CPUExecutionProvider (fallback)"]


def test_without_fallback_it_is_unsupported_and_the_node_is_named() -> None:
    target = open_target(Options("ort:AzureExecutionProvider"))
    case = next(c for c in SUITES["forward"](target, [registry.get("Relu")]) if dict(c.types)["T"] == "float32")
    result = judge_case(case, target)
    assert result.verdict == "unsupported"
    assert "AzureExecutionProvider does not take Relu(14)" in result.message


def test_a_provider_that_is_absent_is_named_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "ort:nobody"]) == 2
    assert "no provider 'nobody'; built in are" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted((ROOT / "docs/foreign-faults").glob("onnxruntime_*.py")), ids=lambda p: p.stem
)
def test_a_listed_fault_of_the_cpu_provider_is_still_there(script: Path) -> None:
    """Fails when a release has mended it: the list, and the profile's waiver, are then to be brought up to date."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_readme_prints_what_it_says() -> None:
    text = (ROOT / "plugins/onnxruntime/README.md").read_text()
    program, printed = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", text, re.DOTALL)[0]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == printed, done.stderr
