"""Writes a run of a model as a program of onnxruntime, onnx and numpy alone, for the tracker of a provider's vendor."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from timberframe_onnxruntime.providers import Provider
from timberframe_onnxruntime.sessions import versioned
from timberframe_onnxruntime.settings import Settings
from timberframe_sdk import Judged
from timberframe_sdk.recording import RecordedRun
from timberframe_sdk.scripts import (
    COMPARISON,
    DRAWING,
    PACKING,
    UNPACK,
    Draw,
    array_text,
    entries,
    judged_entries,
    quoted,
    without_packing,
)

MOST_NODES = 40
"""Larger models are packed."""


def write_script(
    run: RecordedRun,
    judged: Mapping[str, Judged],
    title: str,
    provider: Provider,
    settings: Settings,
    draws: Sequence[Draw] = (),
) -> str:
    """Returns the program: it runs the model on the provider, and ends with status 1 as long as the outputs are wrong.

    Outputs that were not judged are compared with those of onnx.reference, as closely as ONNX's own tests do.
    """
    proto = onnx.load_model_from_string(run.program)
    ops = ", ".join(dict.fromkeys(versioned(n.op_type, proto) for n in proto.graph.node)) or "no node"
    versions = [f"onnxruntime {onnxruntime.__version__}", f"onnx {onnx.__version__}"]
    if not provider.is_default:
        versions.append(" ".join(filter(None, (provider.name, provider.version))))
    parts = [
        f'"""{ops} on {provider.name}.\n\n{quoted(title)}\n\nSeen with {", ".join(versions)}.',
        f'Needs onnxruntime, onnx and numpy. {_status(judged)}\n"""\n',
        _IMPORTS,
        UNPACK,
        DRAWING,
        f"model = {_model(proto, draws)}",
        f"feeds = {entries({name: array_text(x, draws) for name, x in run.inputs.items()})}",
        judged_entries(judged),
        _session(provider, settings),
        _RUN + COMPARISON,
    ]
    return without_packing("\n".join(parts))


def _status(judged: Mapping[str, Judged]) -> str:
    """Returns what the program's status says."""
    if judged:
        return "Status 1: the outputs are wrong, or there are none."
    return (
        "The case does not compare the outputs of this model by themselves. Status 1: they differ from those of\n"
        "onnx.reference, or there are none."
    )


_IMPORTS = f"""{PACKING}import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
"""
_RUN = """
names = [o.name for o in model.graph.output]
try:
    session = make_session()
    got = dict(zip(names, session.run(names, feeds)))
except Exception as e:
    print(f"{type(e).__name__}: {e}")
    print("wrong: the model is refused, or does not run")
    sys.exit(1)
for part in session.get_provider_graph_assignment_info():
    print("on", part.ep_name + ":", ", ".join(node.op_type for node in part.get_nodes()))
if not expected:
    from onnx.reference import ReferenceEvaluator

    expected = dict(zip(names, ReferenceEvaluator(model).run(names, feeds)))
    allowed = {n: 1e-7 + 1e-3 * np.abs(np.asarray(x, np.float64)) for n, x in expected.items() if x.dtype.kind == "f"}
"""


def _session(provider: Provider, settings: Settings) -> str:
    """Returns the function that makes a session as the device does."""
    level = "ORT_ENABLE_ALL" if settings.optimization == "all" else "ORT_DISABLE_ALL"
    folding = ', disabled_optimizers=["ConstantFolding"]' if settings.optimization == "all" else ""
    strict = settings.fallback == "refused" and not provider.is_default
    own = dict(settings.provider_options)
    lines = [
        "",
        "def make_session():",
        "    options = ort.SessionOptions()",
        f"    options.graph_optimization_level = ort.GraphOptimizationLevel.{level}",
        f"    options.intra_op_num_threads = {settings.threads}",
        '    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")',
    ]
    if strict:
        lines.append('    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")')
    if provider.device is None:
        providers = f"providers=[({provider.name!r}, {own!r})]"
        return "\n".join(
            [*lines, f"    return ort.InferenceSession(model.SerializeToString(), options, {providers}{folding})"]
        )
    lines += [
        f"    # The path of the library that has {provider.name}",
        f"    library = sys.argv[1] if len(sys.argv) > 1 else {provider.library!r}",
        f"    ort.register_execution_provider_library({provider.registered!r}, library)",
        f"    devices = [d for d in ort.get_ep_devices() if d.ep_name == {provider.name!r}]",
        f"    options.add_provider_for_devices([devices[{settings.device_index}]], {own!r})",
        f"    return ort.InferenceSession(model.SerializeToString(), options{folding})",
    ]
    return "\n".join(lines)


def _model(proto: onnx.ModelProto, draws: Sequence[Draw]) -> str:
    graph = proto.graph
    opset = max(o.version for o in proto.opset_import if o.domain == "")
    if len(graph.node) > MOST_NODES:
        text = base64.b85encode(zlib.compress(proto.SerializeToString(), 9)).decode()
        return f"onnx.load_model_from_string(unpack({text!r}, np.uint8, (-1,)).tobytes())"
    lines = [
        "helper.make_model(", "    helper.make_graph(", "        [", *(f"            {_node(n)}," for n in graph.node),
        "        ],", '        "case",',
        "        [", *(f"            {_info(i)}," for i in graph.input), "        ],",
        "        [", *(f"            {_info(o)}," for o in graph.output), "        ],",
        "        [", *(f"            {_initializer(i, draws)}," for i in graph.initializer), "        ],",
        "    ),", f'    opset_imports=[helper.make_opsetid("", {opset})],', f"    ir_version={proto.ir_version},", ")",
    ]  # fmt: skip
    return "\n".join(lines)


def _node(node: onnx.NodeProto) -> str:
    attributes = [f", {a.name}={_attribute(a)}" for a in node.attribute]
    return f"helper.make_node({node.op_type!r}, {list(node.input)!r}, {list(node.output)!r}{''.join(attributes)})"


def _attribute(attribute: onnx.AttributeProto) -> str:
    value: Any = helper.get_attribute_value(attribute)
    if isinstance(value, TensorProto):
        return f"numpy_helper.from_array({array_text(numpy_helper.to_array(value))})"
    return repr(list(value) if attribute.type >= onnx.AttributeProto.FLOATS else value)


def _info(value: onnx.ValueInfoProto) -> str:
    given = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else None for d in given.shape.dim]
    shown = shape if given.HasField("shape") else None
    element = TensorProto.DataType.Name(given.elem_type)
    return f"helper.make_tensor_value_info({value.name!r}, TensorProto.{element}, {shown})"


def _initializer(tensor: onnx.TensorProto, draws: Sequence[Draw]) -> str:
    return f"numpy_helper.from_array({array_text(numpy_helper.to_array(tensor), draws)}, {tensor.name!r})"
