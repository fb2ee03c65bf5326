"""Stand-alone scripts that reproduce one case."""

from __future__ import annotations

import base64
import io
import shlex
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.options import Options, device_arguments
from timberframe_core.dtypes import DType, resource
from timberframe_core.ops.definition.opdef import OpDef

LITERAL_ELEMENTS = 100
"""Arrays up to this size are written out; larger ones are packed."""


def array_source(x: np.ndarray) -> str:
    """Returns an expression for an array, bit for bit, that needs numpy (as np), ml_dtypes,
    and `unpack` for large ones.
    """
    name = x.dtype.name
    if x.dtype == object:
        return f"np.array({x.ravel().tolist()!r}, dtype=object).reshape({x.shape})"
    dtype = "ml_dtypes.bfloat16" if name == "bfloat16" else f"np.{name}" if name != "bool" else "np.bool_"
    if x.size > LITERAL_ELEMENTS:
        buffer = io.BytesIO(np.ascontiguousarray(x).tobytes())
        text = base64.b85encode(zlib.compress(buffer.getvalue(), 9)).decode()
        return f"unpack({text!r}, {dtype}, {x.shape})"
    if x.dtype.kind in "biu":
        return f"np.array({x.ravel().tolist()!r}, {dtype}).reshape({x.shape})"
    bits = np.ascontiguousarray(x).reshape(-1).view(np.uint8).tobytes().hex()
    shown = [float(v) if x.dtype.kind != "c" else complex(v) for v in x.ravel()[:6]]
    return f"np.frombuffer(bytes.fromhex({bits!r}), {dtype}).reshape({x.shape})  # {shown}{'...' if x.size > 6 else ''}"


def value_source(value: Any) -> str:
    """Returns an expression for an attr's value."""
    if isinstance(value, DType):
        return f"tf.{value.name}" if value.name != "bool" else "tf.bool"
    if isinstance(value, tuple | list):
        return "(" + "".join(value_source(v) + ", " for v in value) + ")"
    if isinstance(value, np.ndarray):
        return array_source(value).split("  #")[0]
    return repr(value)


HEADER = '''"""{case_id}"""
import base64, sys, zlib
import ml_dtypes
import numpy as np
import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry


def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).reshape(shape)


'''


def op_script(
    case_id: str,
    op: OpDef,
    attrs: Mapping[str, Any],
    arrays: Sequence[Any],
    spec: str,
    *,
    known: bool = True,
    constants: Collection[str] = (),
) -> str:
    """Returns a script that runs one op on the same inputs, and prints its outputs and the reference's.

    Where the suite is installed, it also prints what is wrong and by how much, and ends with status 1. constants: names
    of inputs that are constants of the graph.
    """
    lines = ["attrs = {"]
    lines += [f"    {k!r}: {value_source(v)}," for k, v in attrs.items()]
    lines += ["}", "inputs = ["]
    for value in arrays:
        if isinstance(value, np.ndarray):
            lines.append(f"    {_element(value)}")
        else:
            lines += ["    [", *(f"        {_element(x)}" for x in value), "    ],"]
    lines += [
        "]",
        "feeds, arguments, setup = {}, [], []",
        f"with tf.Graph().as_default() as graph, tf.device({spec!r}):",
    ]
    for i, arg in enumerate(op.inputs):
        constant = arg.name in constants or (known and arg.name in op.shape_inputs)
        lines += _argument(i, arg.dtype is resource, arg.is_list, constant, known)
    lines += [
        f'    result = apply_op({op.name!r}, arguments, attrs, name="case")',
        "with tf.Session(graph=graph) as session:",
        "    for operation in setup:",
        "        session.run(operation, feeds)",
        "    got = session.run(result, feeds)" if op.outputs else "    session.run(result, feeds)",
    ]
    if op.outputs:
        lines.append('print("got     ", got)')
    lines += [
        "flat = [x for value in inputs for x in ([value] if isinstance(value, np.ndarray) else value)]",
        f"op = registry.get({op.name!r})",
        'print("expected", op.reference(attrs, *flat))',
    ]
    if op.outputs:
        lines += VERDICT
    return HEADER.format(case_id=case_id) + "\n".join(lines) + "\n"


VERDICT = [
    "try:",
    "    from timberframe_conformance.replay import judge_outputs",
    "except ImportError:",
    "    sys.exit()  # without the suite, compare the two by eye",
    "judge_outputs(op, attrs, flat, got)",
]
"""Prints the suite's line on the outputs, and ends the program with status 1 where they are wrong."""


def _element(x: np.ndarray) -> str:
    source, _, comment = array_source(x).partition("  #")
    return f"{source},  #{comment}" if comment else f"{source},"


def _argument(i: int, is_variable: bool, is_list: bool, constant: bool, known: bool) -> list[str]:
    shape = "x.shape" if known else "None"
    if is_variable:
        return [
            f"    x = inputs[{i}]",
            '    handle = apply_op("VarHandleOp", (), {"dtype": tf.as_dtype(x.dtype), "shape": x.shape})',
            '    setup.append(apply_op("AssignVariableOp", [handle, tf.constant(x)]))',
            "    arguments.append(handle)",
        ]
    if constant:
        return [f"    arguments.append(inputs[{i}])"]
    if is_list:
        return [
            f"    many = [tf.placeholder(tf.as_dtype(x.dtype), {shape}) for x in inputs[{i}]]",
            f"    feeds.update(zip(many, inputs[{i}]))",
            "    arguments.append(many)",
        ]
    return [
        f"    x = inputs[{i}]",
        f"    arguments.append(tf.placeholder(tf.as_dtype(x.dtype), {shape}))",
        "    feeds[arguments[-1]] = x",
    ]


CASE_SCRIPT = '''"""{case_id}"""
from timberframe_conformance.replay import replay

replay({case_id!r}, device={device!r}{further})
'''


def case_script(case_id: str, options: Options) -> str:
    """Returns a script that runs a case by its id, for cases that are more than one op on some inputs.

    options: of the run, of which device, settings and profile count.
    """
    given = {"settings": options.settings, "profile": options.profile}
    further = "".join(f", {name}={value!r}" for name, value in given.items() if value)
    return CASE_SCRIPT.format(case_id=case_id, device=options.device, further=further)


def one_line(case_id: str, options: Options) -> str:
    """Returns the command that shows the script of a case. options: as of `case_script`."""
    return f"conformance repro {shlex.join(device_arguments(options))} '{case_id}'"
