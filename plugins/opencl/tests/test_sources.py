"""An op of a vendor that has a source: kernels that nobody wrote, and a place in chains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import Pointwise, apply_op, define_op, define_source
from timberframe_sdk.elementwise.sources import SOURCES
from timberframe_sdk.testing.loaded import temporary_ops

SPEC = "/device:OPENCL:0"
N = 20_011


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[None]:
    with temporary_ops():
        define_op(
            "Acme>Bend",
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=["strength: float = 1.0", "T: {float, double, half, int32}"],
            doc="x + strength * x * x.",
            shape=lambda c: [c.shapes[0]],
            reference=lambda attrs, x: (x + np.asarray(attrs["strength"], x.dtype) * x * x).astype(x.dtype),
            elementwise=True,
            accuracy=Pointwise(float32=2, float64=2),
        )
        define_source(
            "Acme>Bend",
            floats="{0} + acme_bent_{f}(({T}){strength}, {0})",
            integers="{0} + (({T}){strength}) * {0} * {0}",
            functions="""
        static inline float acme_bent_f32(float strength, float x) { return strength * x * x; }
        #ifndef TF_NO_FLOAT64
        static inline double acme_bent_f64(double strength, double x) { return strength * x * x; }
        #endif
        """,
        )
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_an_op_with_a_source_has_a_kernel_on_the_device(session: tf.Session, dtype: str) -> None:
    given = np.arange(6).reshape(2, 3).astype(dtype)
    with tf.device(SPEC):
        y = apply_op("Acme>Bend", [tf.constant(given)], {"strength": 2.0})
    np.testing.assert_array_equal(session.run(y), given + 2 * given * given)


def test_an_op_with_a_source_is_taken_into_chains(session: tf.Session) -> None:
    with tf.device(SPEC):
        x = tf.placeholder(tf.float32, [N])
        y = tf.exp(apply_op("Acme>Bend", [x * 0.5], {"strength": 0.25}) + 1.0)
    assert "arena 0 bytes" in str(session.explain(y))
    given = np.linspace(-1, 1, N, dtype=np.float32)
    half = given / 2
    np.testing.assert_allclose(session.run(y, {x: given}), np.exp(half + half * half / 4 + 1), rtol=1e-6)


@pytest.mark.parametrize("header", sorted({source.header for source in SOURCES.values()} - {""}))
def test_the_driver_takes_the_functions_of_all_ops_with_a_source(session: tf.Session, header: str) -> None:
    """A name that C leaves free may be a type here, such as half."""
    device = next(d for d in session.list_devices() if d.spec == SPEC)
    source = f"""#include <timberframe/accelerator/language.h>
#include <timberframe/elementwise.h>
#include <timberframe/math/{header}.h>
TF_KERNEL tf_zero(TF_GLOBAL int *z) {{ z[0] = 0; }}"""
    assert device.build(source, "tf_zero")
