"""Functions at the points where they, or a part of them, have no derivative; and the gradients there.

`CASES` names expressions and the values of their variables; kinks.json holds the gradients of first and second order
that TensorFlow 2.21 gives. Run in an environment with TensorFlow, this file writes them again:
``python core/tests/gradients/kinks.py``.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).with_suffix(".json")
INF, NAN = float("inf"), float("nan")
LINE = [-INF, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, INF, NAN]
TIES = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-1.0, -1.0, -4.0]]
ZEROS = [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [3.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
GRID = {
    "x": [v for v in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0) for _ in range(7)],
    "y": [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0] * 7,
}
GRID_WITHOUT_ORIGIN = {name: values[:24] + values[25:] for name, values in GRID.items()}
IMAGE = [[[[1.0], [3.0], [3.0]], [[3.0], [2.0], [2.0]], [[2.0], [2.0], [1.0]]]]
VOLUME = [IMAGE[0], [row[::-1] for row in IMAGE[0]]]

FUNCTIONS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "exp",
    "expm1", "floor", "lgamma", "log", "log1p", "log_sigmoid", "negative", "reciprocal", "rint", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "math.erfcinv", "math.erfinv", "math.ndtri",
    "math.reciprocal_no_nan", "math.softplus", "nn.relu", "nn.relu6", "nn.elu", "nn.selu", "nn.leaky_relu",
    "nn.softsign", "nn.swish", "nn.crelu", "nn.l2_loss", "angle",
)  # fmt: skip
PAIRS = (
    "add", "atan2", "div_no_nan", "divide", "floordiv", "floormod", "maximum", "math.multiply_no_nan", "minimum",
    "math.nextafter", "multiply", "polygamma", "pow", "squared_difference", "truncatediv", "math.xdivy",
    "math.xlog1py", "math.xlogy", "zeta",
)  # fmt: skip

CASES: dict[str, dict[str, Any]] = {
    **{f"tf.{name}(x)": {"x": LINE} for name in FUNCTIONS},
    "tf.nn.relu6(x)": {"x": [*LINE, 5.5, 6.0, 6.5]},
    "tf.nn.leaky_relu(x, alpha=1.5)": {"x": LINE},
    "tf.nn.leaky_relu(x, alpha=0.0)": {"x": LINE},
    **{f"tf.{name}(x, y)": GRID for name in PAIRS},
    "tf.pow(x, 2.0)": {"x": LINE},
    "tf.pow(x, 0.5)": {"x": LINE},
    "tf.pow(x, 0.0)": {"x": LINE},
    "tf.pow(x, 1.0)": {"x": LINE},
    "tf.pow(x, 3.0)": {"x": LINE},
    "tf.pow(x, -1.0)": {"x": LINE},
    "x * tf.log(x)": {"x": LINE},
    "tf.sqrt(tf.nn.relu(x))": {"x": LINE},
    "tf.log(tf.nn.relu6(x))": {"x": LINE},
    "tf.nn.relu(x) * tf.nn.relu(-x)": {"x": LINE},
    "tf.sqrt(tf.square(x))": {"x": LINE},
    "tf.log(1 + tf.exp(-tf.abs(x)))": {"x": LINE},
    "tf.log1p(tf.exp(x))": {"x": LINE},
    "tf.maximum(x, 0)": {"x": LINE},
    "tf.minimum(x, 0)": {"x": LINE},
    "tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x))": {"x": LINE},
    "tf.where_v2(x > 0, tf.log(x), 0)": {"x": LINE},
    "tf.where_v2(tf.equal(x, 0), tf.ones_like(x), tf.sin(x) / x)": {"x": LINE},
    "tf.floormod(x, 1.0)": {"x": LINE},
    "x // 2 + x % 2": {"x": [-4.0, -1.0, 0.0, 1.0, 2.0, 3.5]},
    "tf.clip_by_value(x, -1.0, 1.0)": {"x": LINE},
    "tf.clip_by_value(x, y, z)": {
        "x": [0.0, 1.0, 2.0, 1.0, 3.0, 0.0], "y": [0.0, 1.0, 0.0, 1.0, 2.0, 1.0], "z": [1.0, 2.0, 2.0, 1.0, 1.0, 0.0],
    },
    "tf.clip_by_norm(x, 2.0)": {"x": [0.0, 0.0, 0.0]},
    "tf.clip_by_norm(x, 5.0)": {"x": [3.0, 4.0, 0.0]},
    "tf.clip_by_norm(x, 1.0)": {"x": [3.0, 4.0, 0.0]},
    "tf.clip_by_norm(x, 0.0)": {"x": [3.0, 4.0, 0.0]},
    "tf.clip_by_norm(x, 2.0, axes=[1])": {"x": ZEROS},
    "tf.clip_by_norm(x, y)": {"x": [3.0, 4.0, 0.0], "y": 5.0},
    "tf.clip_by_average_norm(x, 2.0)": {"x": [0.0, 0.0, 0.0]},
    "tf.clip_by_average_norm(x, 1.0)": {"x": [3.0, 4.0]},
    "tf.clip_by_average_norm(x, 2.5)": {"x": [3.0, 4.0]},
    "tf.clip_by_average_norm(x, y)": {"x": [3.0, 4.0], "y": 2.5},
    "tf.clip_by_global_norm([x, y], 5.0)[0][0]": {"x": [3.0, 0.0], "y": [4.0]},
    "tf.clip_by_global_norm([x, y], 0.5)[0][1]": {"x": [3.0, 0.0], "y": [4.0]},
    "tf.clip_by_global_norm([x, y], 1.0)[0][0]": {"x": [0.0, 0.0], "y": [0.0]},
    "tf.global_norm([x, y])": {"x": [0.0, 0.0], "y": [0.0]},
    "tf.global_norm([x, y]) + 0": {"x": [3.0, 0.0], "y": [4.0]},
    **{
        f"tf.{name}(x, axis={axis})": {"x": values}
        for name in ("reduce_max", "reduce_min", "reduce_prod", "reduce_logsumexp", "math.reduce_std",
                     "math.reduce_variance", "math.reduce_euclidean_norm", "norm")
        for values in (TIES, ZEROS)
        for axis in ((None, 1) if values is TIES else (0,))
    },
    "tf.reduce_logsumexp(x)": {"x": [-INF, -INF]},
    "tf.reduce_logsumexp(x) + 0": {"x": [-INF, 0.0, 0.0]},
    "tf.reduce_logsumexp(x) * 1": {"x": [INF, 0.0]},
    "tf.norm(x, axis=1)": {"x": ZEROS},
    "tf.norm(x, ord=1, axis=1)": {"x": ZEROS},
    "tf.norm(x, ord=np.inf, axis=1)": {"x": TIES},
    "tf.norm(x, ord=3, axis=1)": {"x": ZEROS},
    "tf.norm(x, ord=0.5, axis=1)": {"x": ZEROS},
    "tf.norm(x, ord='fro', axis=[0, 1])": {"x": [[0.0, 0.0], [0.0, 0.0]]},
    "tf.norm(x, ord=1, axis=[0, 1])": {"x": TIES},
    "tf.norm(x, ord=np.inf, axis=[0, 1])": {"x": TIES},
    "tf.math.reduce_std(x, axis=1)": {"x": TIES},
    "tf.math.reduce_euclidean_norm(x, axis=1)": {"x": ZEROS},
    "tf.math.reduce_prod(x, axis=1)": {"x": ZEROS},
    "tf.nn.l2_normalize(x, axis=1)": {"x": ZEROS},
    "tf.nn.l2_normalize(x, axis=1, epsilon=5.0)": {"x": ZEROS},
    "tf.math.l2_normalize(x)": {"x": [0.0, 0.0]},
    "tf.linalg.l2_normalize(x, axis=0)": {"x": ZEROS},
    **{
        f"tf.{name}(x, axis=1, exclusive={exclusive}, reverse={reverse})": {"x": ZEROS}
        for name in ("cumsum", "cumprod", "math.cumulative_logsumexp")
        for exclusive in (False, True) for reverse in (False, True)
    },
    "tf.nn.moments(x, [1])[1]": {"x": TIES},
    "tf.nn.moments(x, [1])[0] * tf.nn.moments(x, [1])[1]": {"x": ZEROS},
    "tf.nn.weighted_moments(x, [1], y)[1]": {"x": TIES, "y": [[1.0, 0.0, 2.0]]},
    "tf.nn.weighted_moments(x, [1], y)[0]": {"x": TIES, "y": [[1.0, 0.0, 2.0]]},
    "tf.nn.batch_normalization(x, y, z, None, None, 0.0)": {"x": [1.0, 2.0], "y": [1.0, 1.0], "z": [0.0, 1.0]},
    "tf.nn.batch_normalization(x, y, z, x, y, 0.5)": {"x": [1.0, 2.0], "y": [1.0, 1.0], "z": [0.0, 1.0]},
    "tf.ensure_shape(tf.segment_max(x, [0, 0, 1, 1]), [2])": {"x": [2.0, 2.0, 1.0, 0.0]},
    "tf.ensure_shape(tf.segment_min(x, [0, 0, 1, 1]), [2])": {"x": [2.0, 2.0, 1.0, 0.0]},
    "tf.ensure_shape(tf.segment_prod(x, [0, 0, 1, 1]), [2])": {"x": [0.0, 0.0, 0.0, 3.0]},
    "tf.ensure_shape(tf.segment_mean(x, [0, 0, 2, 2]), [3])": {"x": [0.0, 0.0, 0.0, 3.0]},
    "tf.unsorted_segment_max(x, [2, 2, 0, -1], 3)": {"x": [2.0, 2.0, 1.0, 0.0]},
    "tf.unsorted_segment_min(x, [2, 2, 0, -1], 3)": {"x": [2.0, 2.0, 1.0, 0.0]},
    "tf.unsorted_segment_prod(x, [2, 2, 0, 0, -1], 4)": {"x": [0.0, 0.0, 0.0, 3.0, 1.0]},
    "tf.nn.top_k(x, 2)[0]": {"x": TIES},
    "tf.sort(x)": {"x": TIES},
    "tf.sort(x, direction='DESCENDING')": {"x": TIES},
    "tf.sort(x, axis=0)": {"x": TIES},
    "tf.scatter_nd([[1], [1], [0]], x, [3])": {"x": [0.0, 0.0, 1.0]},
    "tf.tensor_scatter_nd_max(x, [[0], [1], [1]], y)": {"x": [1.0, 2.0, 0.0], "y": [1.0, 2.0, 2.0]},
    "tf.tensor_scatter_nd_min(x, [[0], [1], [1]], y)": {"x": [1.0, 2.0, 0.0], "y": [1.0, 2.0, 2.0]},
    "tf.tensor_scatter_update(x, [[0], [2]], y)": {"x": [1.0, 2.0, 0.0], "y": [1.0, 2.0]},
    "tf.nn.max_pool(x, 2, 1, 'VALID')": {"x": IMAGE},
    "tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')": {"x": IMAGE},
    "tf.nn.max_pool(x, [1, 1, 2, 1], [1, 1, 1, 1], 'SAME')": {"x": IMAGE},
    "tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 1, 1, 1], 'SAME')[0]": {"x": IMAGE},
    "tf.nn.avg_pool(x, 2, 1, 'SAME')": {"x": IMAGE},
    "tf.nn.max_pool3d(x[tf.newaxis], 2, 1, 'VALID')": {"x": VOLUME},
    "tf.nn.max_pool3d(x[tf.newaxis], [1, 1, 1, 2, 1], [1, 1, 1, 1, 1], 'VALID')": {"x": VOLUME},
    "tf.nn.max_pool3d(x[tf.newaxis], [1, 2, 1, 2, 1], [1, 1, 2, 1, 1], 'SAME')": {"x": VOLUME},
    "tf.nn.dilation2d(x, tf.zeros_like(x)[0, :2, :2], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding='SAME')": {
        "x": IMAGE
    },
    "tf.nn.erosion2d(x, tf.zeros_like(x)[0, :2, :2], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')": {"x": IMAGE},
    "tf.nn.lrn(x, 1, bias=1.0, alpha=0.5, beta=0.5)": {"x": [[[[0.0, 0.0, 1.0]]]]},
    "tf.nn.softmax(x)": {"x": TIES},
    "tf.nn.log_softmax(x, axis=0)": {"x": TIES},
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)": {"x": TIES, "y": ZEROS[:3]},
    "tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)": {"x": TIES, "y": ZEROS[:3]},
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=x)": {"x": TIES},
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)": {
        "x": [*LINE, 0.0, 0.0], "y": [0.0, 0.5, 1.0, 0.25, 0.0, 0.75, 1.0, 0.0, 0.5, 1.0, 0.5, 1.0, 0.5],
    },
    "tf.nn.weighted_cross_entropy_with_logits(labels=y, logits=x, pos_weight=1.5)": {
        "x": [*LINE, 0.0, 0.0], "y": [0.0, 0.5, 1.0, 0.25, 0.0, 0.75, 1.0, 0.0, 0.5, 1.0, 0.5, 1.0, 0.5],
    },
    "tf.losses.sigmoid_cross_entropy(y, x, label_smoothing=0.25)": {
        "x": [-1.0, 0.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0, 0.5],
    },
    "tf.losses.sigmoid_cross_entropy(y, x, weights=z)": {
        "x": [-1.0, 0.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0, 0.5], "z": [1.0, 0.0, 2.0, 1.0],
    },
    "tf.losses.absolute_difference(y, x)": {"x": [1.0, 0.0, 2.0], "y": [1.0, 0.0, 1.0]},
    "tf.losses.huber_loss(y, x)": {"x": [1.0, 0.0, 2.0, 1.0, 3.0], "y": [1.0, 0.0, 1.0, 2.0, 0.0]},
    "tf.losses.huber_loss(y, x, delta=0.5)": {"x": [1.0, 0.0, 2.0, 1.0], "y": [1.5, 0.5, 1.0, 2.0]},
    "tf.losses.hinge_loss(y, x)": {"x": [1.0, 0.0, -1.0, 2.0], "y": [1.0, 0.0, 0.0, 1.0]},
    "tf.losses.log_loss(y, x)": {"x": [1.0, 0.0, 0.5], "y": [1.0, 0.0, 1.0]},
    "tf.losses.log_loss(y, x, epsilon=0.0)": {"x": [1.0, 0.0, 0.5], "y": [1.0, 0.0, 1.0]},
    "tf.losses.mean_squared_error(y, x)": {"x": [1.0, 0.0, 0.5], "y": [1.0, 0.0, 1.0]},
    "tf.losses.mean_squared_error(y, x, weights=z)": {
        "x": [1.0, 0.0, 0.5], "y": [1.0, 0.0, 1.0], "z": [0.0, 0.0, 0.0],
    },
    "tf.losses.softmax_cross_entropy(y, x, label_smoothing=0.5)": {"x": TIES, "y": np.eye(3).tolist()},
    "tf.losses.sparse_softmax_cross_entropy([0, 1, 2], x)": {"x": TIES},
    "tf.abs(tf.complex(x, y))": GRID,
    "tf.angle(tf.complex(x, y))": GRID_WITHOUT_ORIGIN,
    "tf.real(tf.sign(tf.complex(x, y)))": GRID,
    "tf.imag(tf.sqrt(tf.complex(x, y)))": GRID,
    "tf.real(tf.log(tf.complex(x, y)))": GRID_WITHOUT_ORIGIN,
    "tf.matrix_determinant(x)": {"x": [[1.0, 0.0], [0.0, 1.0]]},
    "tf.linalg.slogdet(x)[1]": {"x": [[1.0, 0.0], [0.0, -1.0]]},
    "tf.trace(x)": {"x": [[1.0, 0.0], [0.0, 0.0]]},
    "tf.nn.embedding_lookup(x, [0, 1, 1], max_norm=1.0)": {"x": [[0.0, 0.0], [0.6, 0.8], [3.0, 4.0]]},
    "tf.saturate_cast(x, tf.float16)": {"x": [-70000.0, 0.0, 65504.0, 70000.0]},
    "tf.scalar_mul(y, x)": {"x": [0.0, 1.0], "y": 0.0},
    "tf.foldl(tf.maximum, x)": {"x": [0.0, 2.0, 2.0, 1.0]},
    "tf.scan(lambda a, b: a * tf.nn.relu(b), x)": {"x": [1.0, 0.0, 2.0]},
    "tf.map_fn(tf.abs, x)": {"x": [1.0, 0.0, -2.0]},
    "tf.cond(x[0] > 0, lambda: tf.abs(x), lambda: tf.nn.relu(x))": {"x": [0.0, 1.0, -1.0]},
}  # fmt: skip


BETTER = {
    "tf.acosh(x)": "TensorFlow's second order is NaN at infinity, where it is 0",
    "tf.asinh(x)": "TensorFlow's second order is NaN at infinity, where it is 0",
    "tf.ensure_shape(tf.segment_prod(x, [0, 0, 1, 1]), [2])": "TensorFlow's second order lacks products with two zeros",
    "tf.unsorted_segment_prod(x, [2, 2, 0, 0, -1], 4)": "TensorFlow's second order is NaN where elements are 0",
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)": "TensorFlow leaves the labels out of it",
}
"""Expressions whose gradients of second order are not TensorFlow's, and why."""

DERIVATIVES = frozenset(
    {
        "tf.math.xdivy(x, y)", "tf.math.xlog1py(x, y)", "tf.math.xlogy(x, y)",
        "tf.reduce_prod(x, axis=0)", "tf.math.reduce_prod(x, axis=1)",
        *(f"tf.cumprod(x, axis=1, exclusive={e}, reverse={r})" for e in (False, True) for r in (False, True)),
    }
)  # fmt: skip
"""Expressions whose gradients are the derivatives at zeros, where TensorFlow's are 0 or lack terms: it divides by the
element, or leaves the factor out. test_zeros_and_limits.py has the right values."""

FLOAT32_ALONE = ("clip_by_average_norm", "log_loss", "lrn", "max_pool3d")
"""Functions that TensorFlow computes in float32 whatever it is given, or refuses for float64."""

Orders = list[list[np.ndarray | None]]


def dtypes(expression: str) -> list[str]:
    """Returns the dtypes to try an expression in."""
    return ["float32"] if any(name in expression for name in FLOAT32_ALONE) else ["float64", "float32"]


def weights(x: Any) -> np.ndarray:
    """Different factors for the elements of a tensor, so that no two can be taken for one another."""
    shape = x.shape.as_list()
    return (1 + np.arange(int(np.prod(shape))) % 7 / 4).reshape(shape).astype(x.dtype.as_numpy_dtype)


def gradients(tf: Any, expression: str, dtype: str) -> Orders:
    """Returns the gradients of first and of second order by each variable; None where there is none.

    The result is weighted by `weights`; for the second order, the first one's gradients are, and added up.
    """
    with tf.Graph().as_default() as graph:
        named = {name: tf.constant(np.asarray(values, dtype)) for name, values in CASES[expression].items()}
        xs = list(named.values())
        result = eval(expression, {"tf": tf, "np": np, **named})
        orders = [tf.gradients(result, xs, grad_ys=tf.constant(weights(result)))]
        first = [tf.convert_to_tensor(g) for g in orders[0] if g is not None]
        if first:
            with contextlib.suppress(LookupError):  # TensorFlow may know no gradient of the gradient
                orders.append(tf.gradients(first, xs, grad_ys=[tf.constant(weights(g)) for g in first]))
        fetches = [tf.convert_to_tensor(g) for order in orders for g in order if g is not None]
        with tf.Session(graph=graph) as session:
            found = iter(session.run(fetches))
        return [[None if g is None else next(found) for g in order] for order in orders]


def stored() -> dict[str, dict[str, Any]]:
    """For each expression and dtype what `gradients` gave in TensorFlow, as lists."""
    result: dict[str, dict[str, Any]] = json.loads(STORED.read_text())
    return result


def assert_same(found: Orders, wanted: list[list[Any]], dtype: str) -> None:
    """Equal within some roundings, NaN and infinities included, in all orders that both have."""
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    for i, (order, expected) in enumerate(zip(found, wanted, strict=False)):
        for k, (gradient, values) in enumerate(zip(order, expected, strict=True)):
            label = f"order {i + 1}, variable {k}, {dtype}"
            if gradient is None:  # TensorFlow gives zeros after loops, wherever they lead to
                assert not np.any(values), label
            else:
                np.testing.assert_allclose(gradient, values, tolerance, tolerance, err_msg=label)


def main() -> None:
    """Stores what TensorFlow gives."""
    import tensorflow.compat.v1 as tf

    lines = []
    for expression in CASES:
        found = {
            dtype: [[None if g is None else g.tolist() for g in order] for order in gradients(tf, expression, dtype)]
            for dtype in dtypes(expression)
        }
        lines.append(f"{json.dumps(expression)}: {json.dumps(found)}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
