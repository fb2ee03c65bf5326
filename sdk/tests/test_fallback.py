"""Kernels that compute by the reference of their op are marked as a fallback, and what was computed so is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_sdk import reference
from timberframe_sdk.numpy_device import KERNELS


def own(node: sdk.KernelNode) -> sdk.Launcher:
    return lambda x, out: np.negative(x, out=out)


def declared(build: Callable[[sdk.KernelNode], Any]) -> sdk.KernelDef:
    into: list[sdk.KernelDef] = []
    sdk.kernel(into, "Neg", "ACME")(build)
    return into[0]


def test_kernels_by_reference_are_fallbacks() -> None:
    assert all(k.fallback for k in sdk.reference_kernels("ACME", ["Neg", "Exp"]))


def test_a_kernel_declared_with_the_reference_as_builder_is_a_fallback() -> None:
    assert declared(sdk.reference_launcher).fallback


def test_a_kernel_with_a_builder_of_its_own_is_none() -> None:
    assert not declared(own).fallback


def test_the_numpy_device_says_which_of_its_kernels_are_fallbacks() -> None:
    assert {k.op for k in KERNELS if k.fallback} == {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}


def test_what_a_device_computed_by_references_is_known_afterwards() -> None:
    """However its plugin called the reference: here by a translation of a compiler."""
    with tf.Graph().as_default(), tf.device("/device:ASYNC:0"):
        x = tf.placeholder(tf.float32, [2])
        y = tf.asinh(x)
    with tf.Session(graph=y.graph) as session:
        session.run(y, {x: [1.0, 2.0]})
    assert reference.times_computed("ASYNC")["Asinh"] >= 1
    assert "Asinh" not in reference.times_computed("CPU")
