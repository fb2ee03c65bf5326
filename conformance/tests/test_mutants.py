"""Known bugs are noticed by the cases that should notice them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import changed_mutants, prove
from timberframe_conformance.options import Options, in_share
from timberframe_conformance.target import Target
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InternalError
from timberframe_core.ops.definition import registry
from timberframe_ops.random.philox import Philox

pytestmark = pytest.mark.slow

QUICK = (
    "tail-skipped",
    "nan-dropped",
    "broadcast-row",
    "stale",
    "leak",
    "error-swallowed",
    "wrong-error",
    "where-order",
    "tanh-grad-square",
    "sub-gradient-sign",
)


@pytest.mark.parametrize("name", QUICK)
def test_mutant_is_noticed_as_it_should(target: Target, name: str) -> None:
    proof = prove(target, MUTANTS[name], Options("reference"))
    assert proof.caught
    assert proof.ok, proof.problems


def test_an_op_whose_kernel_is_generated_can_have_a_mutant() -> None:
    """In a process that has not looked its kernel up before."""
    names = "mutants", "--device=cpu", "--name=adds-to-output"
    command = [sys.executable, "-m", "timberframe_conformance.cli", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("caught  adds-to-output"), done.stdout


def test_correct_kernels_are_back_after_a_mutant(target: Target, command: Any) -> None:
    prove(target, MUTANTS["tail-skipped"], Options("reference"))
    status, output, _ = command("run", "--device=reference", "--op=Tanh", "--suite=forward", "--jobs=0")
    assert status == 0, output


def test_a_mutant_that_several_threads_run_leaves_the_generator_as_it_was(target: Target) -> None:
    before = Philox(1).numbers(8)
    assert prove(target, MUTANTS["vector-rounds"], Options("reference")).caught
    np.testing.assert_array_equal(Philox(1).numbers(8), before)


def test_explain_names_no_mutants_as_kernels_that_decline(target: Target) -> None:
    """Those that were tried, and those that were not."""
    prove(target, MUTANTS["tail-skipped"], Options("reference"))
    with tf.Graph().as_default(), tf.device(target.spec), tf.Session() as session:
        x = tf.placeholder(tf.float32, [7])
        (report,) = session.explain(tf.tanh(x), {x: np.ones(7)}).kernels
    assert report.declined == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ("--device=cpu", "--name=mul-trailing-one"),
            "left out: it has a device of its own, and --device cpu asks for",
        ),
        (("--soak", "--name=tail-skipped"), "left out: it is tried without --soak"),
        (("--name=no-such",), "mutant no-such is not known; --list prints all"),
    ],
)
def test_a_named_mutant_that_is_not_tried_is_an_error(command: Any, options: tuple[str, ...], reason: str) -> None:
    status, _, errors = command("mutants", *options)
    assert status == 2
    assert reason in errors


def test_there_are_at_least_forty_for_known_ops() -> None:
    assert sum(registry.find(m.op) is not None for m in MUTANTS.values()) >= 40


def test_each_mutant_is_in_one_share() -> None:
    parts = [n for k in range(8) for n in MUTANTS if in_share(n, (k, 8))]
    assert sorted(parts) == sorted(MUTANTS)


def test_changed_files_choose_their_mutants() -> None:
    module = registry.get("MatMul").shape.__module__.rsplit(".", 1)[-1]
    chosen = changed_mutants([f"core/src/timberframe_ops/math/{module}.py"])
    assert "matmul-transpose" in chosen
    assert "string-prefix" not in chosen


def test_unnoticed_mutant_fails_the_proof(target: Target) -> None:
    harmless = dataclasses.replace(MUTANTS["tail-skipped"], name="no bug at all")
    proof = prove(target, harmless, Options("reference"))
    assert proof.problems == ["no case of suite forward noticed"]


def test_list_shows_what_each_is(command: Any) -> None:
    status, output, _ = command("mutants", "--list")
    assert status == 0
    assert "tail-skipped: Tanh: the elements after the last whole vector of four are not computed (forward)" in output


def test_guard_zones_show_a_write_past_the_end(target: Target) -> None:
    """The SDK's KernelDevice has guard zones too, so vendors need not write them."""
    import ctypes

    from timberframe_conformance.cluster import one_node, run_cluster
    from timberframe_conformance.mutants.activate import active
    from timberframe_conformance.mutants.base import Call

    def writes_on(c: Call) -> None:
        c.write(0, c.true[0])
        end = c.outputs[0].__array_interface__["data"][0] + c.outputs[0].nbytes
        zone = (ctypes.c_ubyte * 4).from_address(end)
        zone[:] = [byte ^ 0xFF for byte in zone]

    bug = dataclasses.replace(MUTANTS["tail-skipped"], bug=writes_on)
    launch = bug.build
    op = registry.get("Tanh")
    x = np.ones(5, np.float32)
    cluster, fed = one_node(target.device, op, {"T": as_dtype("float32")}, [x])
    with active(target, ""), pytest.MonkeyPatch.context() as patch:
        kernel = dataclasses.replace(target.device.kernel(cluster.nodes[0]), build=launch)
        patch.setattr(target.device, "kernel", lambda node: kernel)
        with pytest.raises(InternalError, match="4 bytes after it were written"):
            run_cluster(target.device, cluster, fed, "guarded")
