"""What each op is in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

import timberframe_sdk as sdk

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int32", "int64")
ALL = (*NUMBERS, "bool")


def translate(node, inputs):
    """The outputs of a node as traced arrays."""
    if node.op in TRANSLATIONS:
        return TRANSLATIONS[node.op][0](node, *inputs)
    return CONTROL_FLOW[sdk.role(node.op)](node, *inputs)


def refusal(node):
    """Why there is no translation of a node; None if there is one."""
    if sdk.role(node.op) in CONTROL_FLOW:
        return None
    if node.op not in TRANSLATIONS:
        return "the op has no translation to JAX"
    if "_kernel" in node.attrs:
        return f"there is no kernel with the label {node.attrs['_kernel']!r}"
    _, dtypes, why_not = TRANSLATIONS[node.op]
    for value in (*node.inputs, *node.outputs):
        if value.dtype.name not in ALL:
            return f"{value.dtype.name} is not one of {', '.join(ALL)}"
    wanted = node.attrs.get("T", node.attrs.get("SrcT"))
    if wanted is not None and wanted.name not in dtypes:
        return f"{wanted.name} is not one of {', '.join(dtypes)}"
    return why_not(node)


def elementwise(function):
    return lambda node, *inputs: function(*inputs)


def reduction(function):
    return lambda node, x, axes: function(x, tuple(np.ravel(node.const(1))), keepdims=node.attrs["keep_dims"])


def summed(x, axes, keepdims):
    return jnp.sum(x, axes, dtype=x.dtype, keepdims=keepdims)


def largest(x, axes, keepdims):
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.max(x, axes, keepdims=keepdims, initial=jnp.iinfo(x.dtype).min)
    found = jnp.max(x, axes, keepdims=keepdims, initial=-np.inf)
    return jnp.where(jnp.any(jnp.isnan(x), axes, keepdims=keepdims), np.nan, found)  # XLA's reduction may lose NaN


def relu_grad(node, gradient, output):
    return jnp.where(output > 0, gradient, gradient * 0)  # keeps the sign of zero, as TensorFlow does


def mat_mul(node, a, b):
    a, b = (a.T if node.attrs["transpose_a"] else a), (b.T if node.attrs["transpose_b"] else b)
    return jnp.matmul(a, b, precision="highest")


def bias_add(node, x, bias):
    return x + bias


def conv_2d(node, x, filters):
    attrs = node.attrs
    return jax.lax.conv_general_dilated(
        x,
        filters,
        attrs["strides"][1:3],
        attrs["padding"],
        rhs_dilation=attrs["dilations"][1:3],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[3] // filters.shape[2],
        precision="highest",
    )


def gradient_descent(node, variable, rate, gradient):
    return variable - rate * gradient


def yes(node):
    return None


def nhwc_only(node):
    layout = node.attrs["data_format"]
    return None if layout == "NHWC" else f"data_format is {layout}; NHWC is required"


def plain_convolution(node):
    padding = node.attrs["padding"]
    if padding not in ("SAME", "VALID"):
        return f"padding is {padding}; SAME or VALID is required"
    return nhwc_only(node)


def while_loop(node, *inputs):
    cond, body = map(sdk.ClusterFunction, node.inner)
    count = len(node.outputs)
    state, fixed = tuple(map(jnp.asarray, inputs[:count])), inputs[count:]
    return jax.lax.while_loop(
        lambda state: truth(cond(translate, [*state, *fixed])[0]),
        lambda state: tuple(jnp.asarray(x) for x in body(translate, [*state, *fixed])),
        state,
    )


def if_else(node, predicate, *inputs):
    then, otherwise = map(branch, node.inner)
    return jax.lax.cond(truth(predicate), then, otherwise, *inputs)


def case(node, index, *inputs):
    last = len(node.inner) - 1
    index = jnp.where((index < 0) | (index > last), last, index)
    return jax.lax.switch(index, [branch(c) for c in node.inner], *inputs)


def branch(cluster):
    function = sdk.ClusterFunction(cluster)
    return lambda *inputs: tuple(jnp.asarray(x) for x in function(translate, inputs))


def truth(x):
    return jnp.asarray(x) != 0


CONTROL_FLOW = {"loop": while_loop, "branch": if_else, "case": case}

# By op: its translation, the dtypes of its attr T, and what else would be a reason not to run it.
TRANSLATIONS = {
    "Identity": (elementwise(jnp.asarray), ALL, yes),
    "AddV2": (elementwise(jnp.add), NUMBERS, yes),
    "Sub": (elementwise(jnp.subtract), NUMBERS, yes),
    "Mul": (elementwise(jnp.multiply), NUMBERS, yes),
    "RealDiv": (elementwise(jnp.divide), FLOATS, yes),
    "Maximum": (elementwise(jnp.maximum), NUMBERS, yes),
    "Neg": (elementwise(jnp.negative), NUMBERS, yes),
    "Square": (elementwise(jnp.square), NUMBERS, yes),
    "Exp": (elementwise(jnp.exp), FLOATS, yes),
    "Tanh": (elementwise(jnp.tanh), FLOATS, yes),
    "Relu": (elementwise(lambda x: jnp.where(x <= 0, jnp.zeros_like(x), x)), NUMBERS, yes),
    "ReluGrad": (relu_grad, NUMBERS, yes),
    "OnesLike": (elementwise(jnp.ones_like), ALL, yes),
    "Less": (elementwise(jnp.less), NUMBERS, yes),
    "SelectV2": (elementwise(jnp.where), ALL, yes),
    "Sum": (reduction(summed), NUMBERS, yes),
    "Max": (reduction(largest), NUMBERS, yes),
    "Reshape": (lambda node, x, shape: jnp.reshape(x, node.outputs[0].shape), ALL, yes),
    "Transpose": (lambda node, x, order: jnp.transpose(x, tuple(node.const(1))), ALL, yes),
    "MatMul": (mat_mul, FLOATS, yes),
    "BiasAdd": (bias_add, NUMBERS, nhwc_only),
    "BiasAddGrad": (lambda node, x: summed(x, tuple(range(x.ndim - 1)), False), NUMBERS, nhwc_only),
    "BroadcastTo": (lambda node, x, shape: jnp.broadcast_to(x, node.outputs[0].shape), ALL, yes),
    "Conv2D": (conv_2d, FLOATS, plain_convolution),
    "ResourceApplyGradientDescent": (gradient_descent, FLOATS, yes),
}
