"""Libraries of native kernels: loaded, checked, and kept for as long as their kernels may run."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import types
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import EXACT, KernelDef, NativeLibrary, define_op, hookimpl, include_directory
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

SOURCE = """
#include "timberframe/kernel.h"
MARK
int32_t add_words(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                  const int64_t *parameters) {
  const float *x = inputs[0]->data;
  float *y = outputs[0]->data;
  for (int64_t i = 0; i < inputs[0]->size; i++) {
    if (x[i] < 0) return tf_fail(context, TF_INVALID_ARGUMENT, 1, i, SIZE, 0, 0);
    y[i] = x[i] + (float)parameters[0] + (float)tf_double(parameters[1]);
  }
  return TF_OK;
}
"""
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[None]:
    with temporary_ops():
        define_op(
            "Acme>AddWords", inputs=["x: float"], outputs=["y: float"], doc="x + 3.5.", shape=lambda c: [c.shapes[0]],
            reference=lambda attrs, x: x + 3.5, accuracy=EXACT,
        )  # fmt: skip
        yield


def library(folder: Path, mark: str = "TF_KERNEL_LIBRARY", size: str = "0") -> NativeLibrary:
    source, made = folder / "kernels.c", folder / "kernels.so"
    source.write_text(SOURCE.replace("MARK", mark).replace("SIZE", size))
    command = ["cc", "-shared", "-fPIC", f"-I{include_directory()}", str(source), "-o", str(made)]
    subprocess.run(command, check=True, timeout=60)
    return NativeLibrary(made)


def test_a_kernel_of_a_library_runs_and_its_error_is_reported(tmp_path: Path) -> None:
    found = [library(tmp_path)]
    alive = weakref.ref(found[0])
    kernel = KernelDef(
        "Acme>AddWords", "CPU", lambda node: found.pop().kernel("add_words", [3, 0.5], ["x[{0}] is negative"])
    )
    plugin = types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [kernel]))
    with (
        loaded_plugin("words", plugin),
        tf.Graph().as_default() as graph,
        tf.device("/cpu:0"),
        tf.Session(graph=graph) as session,
    ):
        x = tf.placeholder(tf.float32, [2])
        y = apply_op("Acme>AddWords", [x], name="y")
        np.testing.assert_array_equal(session.run(y, {x: [1, 2]}), [4.5, 5.5])
        gc.collect()
        assert alive() is not None  # what runs its code keeps it
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Acme>AddWords 'y': x\[1\] is negative"):
            session.run(y, {x: [1, -2]})


def test_a_kernel_knows_how_much_of_the_error_there_is(tmp_path: Path) -> None:
    """So that a kernel which was compiled against a later header leaves alone what this one lacks."""
    run = library(tmp_path, size="context->error->struct_size").kernel("add_words", [0, 0.0], ["{1} bytes"])
    kernel = KernelDef("Acme>AddWords", "CPU", lambda node: run, label="size")
    with (
        loaded_plugin("error-size", types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [kernel]))),
        tf.Graph().as_default() as graph,
        tf.device("/cpu:0"),
        tf.Session(graph=graph) as session,
    ):
        y = apply_op("Acme>AddWords", [[-1.0]], {"_kernel": "size"})
        with pytest.raises(tf.errors.InvalidArgumentError, match=": 56 bytes"):
            session.run(y)


def test_the_native_module_of_the_cpu_is_checked_as_libraries_are() -> None:
    code = (
        "import types, timberframe_cpu._native as native\n"
        "native.lib = types.SimpleNamespace(tf_abi_major=lambda: 99)\n"
        "import timberframe_cpu.library"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "InternalError: timberframe-cpu: was compiled for version 99 of timberframe/kernel.h" in found.stderr


def test_a_library_for_another_version_of_the_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InternalError, match=r"kernels\.so: was compiled for version 99 .* version 2 is req"):
        library(tmp_path, "int32_t tf_abi_major(void) { return 99; }")


def test_a_library_that_does_not_say_its_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InternalError, match="one of its sources must have TF_KERNEL_LIBRARY"):
        library(tmp_path, "")


def test_a_missing_function_is_named(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="has no function multiply"):
        library(tmp_path).kernel("multiply")


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"gone\.so: does not load"):
        NativeLibrary(tmp_path / "gone.so")
