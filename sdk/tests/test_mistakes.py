"""Mistakes that authors of devices and kernels make: each is reported by name, where it was made."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import KernelDef, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin

X = np.ones(3, np.float32)


def plugin(*kernels: KernelDef) -> Any:
    return types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: list(kernels)))


def run_with(label: str, build: Any, device: str) -> Any:
    """Runs a Neg whose kernel has this builder."""
    kind = device.split(":")[1].upper()
    made = plugin(KernelDef("Neg", kind, build, label=label))
    with (
        loaded_plugin(label, made),
        tf.Graph().as_default() as graph,
        tf.device(device),
        tf.Session(graph=graph) as session,
    ):
        x = tf.placeholder(tf.float32, [None])
        node = graph.apply("Neg", [x], {"T": tf.float32, "_kernel": label}, "negated")
        return session.run(node.outputs[0], {x: X})


DEVICES = pytest.mark.parametrize("device", ["/device:CPU:0", "/device:NUMPY:0"])


@DEVICES
def test_a_launcher_may_return_what_numpy_returns(device: str) -> None:
    result = run_with(f"returns{device[8:11]}", lambda node: lambda x, out: np.negative(x, out=out), device)
    np.testing.assert_array_equal(result, -X)


@pytest.mark.parametrize("returned", ["view", "handle"])
def test_a_launcher_may_return_what_is_no_new_array(returned: str) -> None:
    def launch(x: np.ndarray, out: np.ndarray) -> Any:
        negative = np.negative(x, out=out[...])
        return negative if returned == "view" else 7

    np.testing.assert_array_equal(run_with(returned, lambda node: launch, "/device:NUMPY:0"), -X)


@pytest.mark.parametrize("function", [np.negative, np.sum])
def test_a_launcher_that_returns_its_result_in_place_of_filling_the_output_is_an_error(function: Any) -> None:
    words = r"Neg 'negated': its launcher returned a new array .*; it must fill .*  \[/device:NUMPY:0"
    with pytest.raises(tf.errors.InternalError, match=words):
        run_with(f"returning{function.__name__}", lambda node: lambda x, out: function(x), "/device:NUMPY:0")


@DEVICES
def test_a_builder_that_raises_is_named(device: str) -> None:
    def build(node: Any) -> Any:
        return node.attrs["factr"]

    fact = r"raised KeyError: 'factr' \(raised in build, test_mistakes\.py:\d+\)"
    words = rf"Neg 'negated': kernel .*build {fact}  \[{device}, .*test_mistakes\.py:\d+"
    with pytest.raises(tf.errors.UnknownError, match=words):
        run_with(f"raises{device[8:11]}", build, device)


def test_a_launcher_that_raises_is_named_with_its_line() -> None:
    def launch(x: np.ndarray, out: np.ndarray) -> None:
        np.sum(x, axis=7)

    fact = r"AxisError: axis 7 is out of bounds .* \(raised in launch, test_mistakes\.py:\d+\)"
    with pytest.raises(tf.errors.UnknownError, match=rf"Neg 'negated': {fact}  \[/device:NUMPY:0, "):
        run_with("fails", lambda node: launch, "/device:NUMPY:0")


@DEVICES
@pytest.mark.parametrize("when", ["built", "launched"])
def test_an_error_that_names_its_node_is_not_its_own_cause(device: str, when: str) -> None:
    def fail(*_: Any) -> None:
        raise tf.errors.InvalidArgumentError("Neg 'elsewhere': no reading", "elsewhere")

    def build(node: Any) -> Any:
        return fail() if when == "built" else fail

    with pytest.raises(tf.errors.InvalidArgumentError, match="no reading") as raised:
        run_with(f"{when}{device[8:11]}", build, device)
    causes: list[BaseException | None] = [raised.value]
    while causes[-1] is not None and causes[-1].__cause__ not in causes:
        causes.append(causes[-1].__cause__)
    assert causes[-1] is None


@DEVICES
def test_a_builder_that_says_unimplemented_is_no_kernel(device: str) -> None:
    def build(node: Any) -> Any:
        raise tf.errors.UnimplementedError("NHWC only")

    words = r"Neg 'negated': NHWC only"
    with pytest.raises(tf.errors.NoKernelError, match=words):
        run_with(f"unimplemented{device[8:11]}", build, device)


@DEVICES
def test_a_builder_that_gives_nothing_is_named(device: str) -> None:
    with pytest.raises(tf.errors.InternalError, match=r"Neg 'negated': kernel .* built None; a launcher is required"):
        run_with(f"nothing{device[8:11]}", lambda node: None, device)


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        ({"X": ("float32",)}, r"kernel MatMul on CPU: types names 'X'; the op's type attrs are T"),
        ({"T": ("float",)}, r"kernel MatMul on CPU: 'float' in types; names such as 'float32' are required"),
    ],
)
def test_types_that_mean_nothing_are_refused(allowed: Any, words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        loader.registry.add("typo", plugin(KernelDef("MatMul", "CPU", lambda node: None, allowed, label="typo")))


@pytest.mark.parametrize("pair", [(0, 3), (0, -1)])
def test_an_inplace_pair_of_an_input_that_is_not_there_is_refused(pair: tuple[int, int]) -> None:
    words = rf"kernel Relu on CPU: inplace has \({pair[0]}, {pair[1]}\); .* the op has 1 inputs"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        loader.registry.add("typo", plugin(KernelDef("Relu", "CPU", lambda node: None, inplace=(pair,), label="typo")))


@pytest.mark.parametrize(
    "kernel", [KernelDef("Rleu", "CPU", lambda node: None), KernelDef("Relu", "CPU", lambda node: None, {"X": ()})]
)
def test_an_error_of_registration_names_the_line_of_the_builder(kernel: KernelDef) -> None:
    with pytest.raises(tf.errors.OpError, match=rf"kernel {kernel.op} on CPU: .*  \[.*test_mistakes\.py:\d+\]$"):
        loader.registry.add("typo", plugin(kernel))


def test_a_wrong_device_option_is_an_error_of_the_session() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"izza"):
        tf.Session(config=tf.SessionConfig(device_options={"CPU": {"izza": "avx2"}}))


def test_options_of_an_unknown_device_type_are_an_error_of_the_session() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"SessionConfig.memory_limit names CPUS; the device types are"
    ):
        tf.Session(config=tf.SessionConfig(memory_limit={"CPUS": 1}))


def test_a_dtype_that_a_device_lacks_is_answered_with_the_devices_that_have_the_op() -> None:
    config = tf.SessionConfig(allow_soft_placement=False)
    with tf.Graph().as_default() as graph, tf.device("/numpy:0"), tf.Session(graph=graph, config=config) as session:
        x = tf.placeholder(tf.float16, [3])
        with pytest.raises(tf.errors.NoKernelError, match=r"device types with the op: .*CPU"):
            session.run(tf.add(x, x), {x: X})
