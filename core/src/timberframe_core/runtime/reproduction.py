"""A node with its inputs as a script that runs it on two devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin.contracts import Device, KernelNode

_SCRIPT = '''"""{op} '{name}' on two devices; the last lines are the results of each."""

from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf

folder = Path(__file__).parent
inputs = np.load(folder / "inputs.npz")
for device in ({first!r}, {second!r}):
    definition = tf.GraphDef()
    definition.ParseFromString((folder / "graph.pb").read_bytes())
    for node in definition.node:
        node.device = device
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        with tf.Session() as session:
            feeds = {{f"{{name}}:0": inputs[name] for name in inputs.files}}
            print(device, session.run(list(graph.get_operation_by_name("node").outputs), feeds))
'''


def save_reproduction(node: KernelNode, inputs: Sequence[np.ndarray], other: Device) -> Path:
    """Writes a script, a graph and the inputs to a new folder, and gives the script's path."""
    import tempfile  # here, since it takes long to import, and results seldom diverge

    folder = Path(tempfile.mkdtemp(prefix="timberframe-divergence-"))
    graph, tensors = Graph(), []
    fed: dict[str, Any] = {}
    for i, (value, x) in enumerate(zip(node.inputs, inputs, strict=True)):
        dtype = as_dtype(value.dtype)
        if value.kind == "const":
            made = graph.apply("Const", [], {"value": x, "dtype": dtype}, f"input{i}")
        else:
            made = graph.apply("Placeholder", [], {"dtype": dtype, "shape": x.shape}, f"input{i}")
            fed[f"input{i}"] = x
        tensors.append(made.outputs[0])
    graph.apply(node.op, tensors, node.attrs, "node")
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.savez(folder / "inputs.npz", **fed)
    script = folder / "show.py"
    script.write_text(_SCRIPT.format(op=node.op, name=node.name, first=node.device.spec, second=other.spec))
    return script
