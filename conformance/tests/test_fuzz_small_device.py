"""conformance fuzz on a vendor's first device, which has three ops beside a host that has all."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.fuzz.draw import draw_program
from timberframe_conformance.fuzz.findings import Finding, Store, regressions
from timberframe_conformance.fuzz.judge import judge
from timberframe_conformance.fuzz.pool import Pool
from timberframe_conformance.fuzz.program import Program, Step
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_sdk.testing.loaded import loaded_plugin

PROGRAMS = 40


@pytest.fixture(scope="module")
def plugin(plugin_path: Path) -> Iterator[None]:
    """The small device as an installed plugin, for this process and its children."""
    information = plugin_path / "small_device-1.0.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: small-device\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[timberframe]\nsmall = small_device\n")
    old = os.environ["PYTHONPATH"]
    os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parent), old))
    sys.path.insert(0, str(Path(__file__).parent))
    with loaded_plugin("small", importlib.import_module("small_device")):
        yield
    sys.path.remove(str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = old
    (information / "entry_points.txt").unlink()


@pytest.fixture(scope="module")
def small(plugin: None, target: Target) -> Target:
    return open_target(Options("small"))


@pytest.fixture(scope="module")
def pool(small: Target, target: Target) -> Pool:
    return Pool(small, target)


@pytest.mark.slow
def test_most_programs_have_nodes_on_a_device_of_three_ops(pool: Pool, small: Target, target: Target) -> None:
    verdicts = [judge(draw_program(pool, 1, n), small, target, oracles=[]) for n in range(PROGRAMS)]
    assert sum(bool(v.on_device) for v in verdicts) > 0.6 * PROGRAMS


@pytest.mark.parametrize("seed", range(3))
def test_wrong_last_element_of_a_product_is_found_soon(
    pool: Pool, small: Target, target: Target, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("SMALL_DEVICE_WRONG", "1")
    programs = (draw_program(pool, seed, n) for n in range(PROGRAMS))
    assert any(judge(p, small, target, oracles=["truth"]).failure for p in programs)


def test_op_limits_which_kernels_of_the_device_are_drawn(small: Target, target: Target) -> None:
    pool = Pool(small, target, ("Neg",))
    nodes = [s for n in range(10) for s in draw_program(pool, 2, n).steps if s.op in ("AddV2", "Neg", "Mul")]
    assert sum(s.op == "Neg" for s in nodes) > 0.6 * len(nodes)


@pytest.mark.slow
def test_command_says_how_many_nodes_ran_on_the_device(command: Any, plugin: None, tmp_path: Path) -> None:
    fuzz = ("fuzz", "--device=small", "--programs=6", "--seed=1", "--jobs=1", f"--store={tmp_path}")
    status, output, _ = command(*fuzz, "--oracles=truth")
    assert status == 0, output
    assert " of 6 programs had nodes on /device:SMALL:0: " in output
    assert re.search(r": \d+ nodes of [1-3] of its 3 ops$", output, re.M)


@pytest.mark.slow
def test_command_says_how_many_nodes_were_of_the_ops_asked_for(command: Any, plugin: None, tmp_path: Path) -> None:
    fuzz = ("fuzz", "--device=small", "--programs=6", "--seed=1", "--jobs=1", f"--store={tmp_path}")
    _, output, _ = command(*fuzz, "--oracles=truth", "--op=Neg")
    assert re.search(r": \d+ nodes, \d+ of them of 1 of the 1 op of --op$", output, re.M), output


def test_op_without_a_kernel_on_the_device_is_a_wrong_call(command: Any, plugin: None) -> None:
    status, _, errors = command("fuzz", "--device=small", "--op=Tanh")
    assert status == 2
    assert "Tanh" in errors


def test_mutant_of_an_op_that_the_device_lacks_is_skipped(command: Any, plugin: None) -> None:
    status, output, _ = command("mutants", "--device=small", "--name=gather-clamps")
    assert status == 0
    assert "n/a     gather-clamps: the device has no kernel of GatherV2" in output


@pytest.mark.slow
def test_summary_tells_known_programs_from_stored_failures(command: Any, plugin: None, tmp_path: Path) -> None:
    fuzz = ("fuzz", "--device=small", "--programs=1", "--seed=1", "--jobs=1", f"--store={tmp_path}", "--oracles=again")
    _, output, _ = command(*fuzz)
    assert f"{len(regressions())} known programs replayed: 0 failures" in output
    assert "run  " not in output


def test_failure_names_op_dtype_and_plain_numbers(
    pool: Pool, small: Target, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_DEVICE_WRONG", "1")
    steps = (
        Step("feed", value=np.arange(6, dtype=np.float32), known=(6,)),
        Step("op", "Mul", ((0, 0),) * 2, device="device"),
    )
    failure = judge(Program(steps, ((1, 0),)), small, target, oracles=["truth"]).failure
    assert failure is not None
    assert "result 0 (Mul, float32): 1 of 6 elements are wrong; at [5]: 26.0, expected 25.0" in failure[1]


def test_failures_of_different_ops_are_different_findings() -> None:
    def finding(op: str, number: int) -> Finding:
        return Finding(Program((), ()), "truth", f"result {number} ({op}, float32): 1 of 6 elements are wrong", "small")

    assert finding("Mul", 0).cause != finding("Neg", 0).cause
    assert finding("Mul", 0).cause == finding("Mul", 3).cause
    assert finding("Mul", 0).kind == finding("Neg", 0).kind


@pytest.mark.slow
def test_failures_of_a_wrong_device_are_reported_and_stored(
    command: Any, plugin: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_DEVICE_WRONG", "1")
    fuzz = ("fuzz", "--device=small", "--programs=8", "--seed=4", "--jobs=1", f"--store={tmp_path}", "--oracles=truth")
    status, output, _ = command(*fuzz)
    assert status == 1
    assert "FAILED truth" in output
    assert "(Mul, " in output
    (script, *_) = (tmp_path / "small").glob("*.py")
    assert "Mul" in script.read_text()


@pytest.mark.slow
def test_damaged_files_are_used_on_a_device_without_matmul(command: Any, plugin: None, tmp_path: Path) -> None:
    hostile = ("hostile", "--device=small", "--count=6", "--seed=1", "--jobs=1", f"--store={tmp_path}")
    status, output, _ = command(*hostile)
    assert status == 0, output
    assert "6 files in" in output


@pytest.mark.slow
def test_failure_found_with_a_mutant_stays_in_sessions_without_it(command: Any, plugin: None, tmp_path: Path) -> None:
    program = Program((Step("feed", value=np.ones(3, np.float32), known=(3,)), Step("op", "Neg", ((0, 0),))), ((1, 0),))
    store = Store(tmp_path, "small")
    store.add(Finding(program, "again", "wrong", "small", mutant="stale-sizes"), "/device:SMALL:0")
    fuzz = ("fuzz", "--device=small", "--programs=1", "--seed=1", "--jobs=1", f"--store={tmp_path}", "--oracles=again")
    _, output, _ = command(*fuzz)
    assert "fixed" not in output
    assert len(store.all()) == 1
