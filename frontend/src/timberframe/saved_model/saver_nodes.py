"""The nodes by which TensorFlow, and its servers, restore and save the variables of a model.

Ours are restored by the names in its collections; TensorFlow's runtime knows only the nodes that `saver_def` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe.api.partitioned_variables import PartitionedVariable
from timberframe.api.variables import Variable
from timberframe_core.dtypes import string
from timberframe_core.graphdef.attributes import encode_attr

_KINDS = {"T": "type", "dtype": "type", "dtypes": "list(type)", "value": "tensor"}


def add_saver_nodes(meta: Any, variables: Mapping[str, Variable | PartitionedVariable]) -> None:
    """Adds them to a MetaGraphDef, as `tf.train.Saver` does in TensorFlow. variables: by their names in the checkpoint.

    Adds none where a variable is a reference, as those of old graphs are: its graph has such nodes of its own.
    """
    parts = [
        (name, part) for name, v in variables.items() for part in (v if isinstance(v, PartitionedVariable) else [v])
    ]
    if not parts or any(v.handle.op.type != "VarHandleOp" for _, v in parts):
        return
    nodes = _Nodes(meta.graph_def, _free_scope({n.name for n in meta.graph_def.node}))
    dtypes = [v.dtype for _, v in parts]
    path = nodes.strings("Const", b"model")
    names = [name.encode() for name, _ in parts]
    slices = [_slice(v).encode() for _, v in parts]
    reads = [
        nodes.add(f"Read_{i}/ReadVariableOp", "ReadVariableOp", [v.op.name], dtype=v.dtype)
        for i, (_, v) in enumerate(parts)
    ]
    which = [nodes.strings("SaveV2/tensor_names", names), nodes.strings("SaveV2/shape_and_slices", slices)]
    save = nodes.add("SaveV2", "SaveV2", [path, *which, *reads], dtypes=dtypes)
    saved = nodes.add("control_dependency", "Identity", [path, f"^{save}"], T=string)
    which = [nodes.strings("RestoreV2/tensor_names", names), nodes.strings("RestoreV2/shape_and_slices", slices)]
    restored = nodes.add("RestoreV2", "RestoreV2", [path, *which], dtypes=dtypes)
    assigned = [
        nodes.add(f"AssignVariableOp_{i}", "AssignVariableOp", [v.op.name, f"{restored}:{i}"], dtype=v.dtype)
        for i, (_, v) in enumerate(parts)
    ]
    meta.saver_def.filename_tensor_name = f"{path}:0"
    meta.saver_def.save_tensor_name = f"{saved}:0"
    meta.saver_def.restore_op_name = nodes.add("restore_all", "NoOp", [f"^{name}" for name in assigned])
    meta.saver_def.max_to_keep, meta.saver_def.version = 5, 2


class _Nodes:
    """Adds nodes of one scope to a GraphDef."""

    def __init__(self, graph_def: Any, scope: str) -> None:
        self._graph_def, self._scope = graph_def, scope

    def add(self, name: str, op: str, inputs: Iterable[str], **attrs: Any) -> str:
        node = self._graph_def.node.add(name=f"{self._scope}/{name}", op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(encode_attr(value, _KINDS[key]))
        return str(node.name)

    def strings(self, name: str, value: bytes | Sequence[bytes]) -> str:
        return self.add(name, "Const", [], dtype=string, value=np.array(value, object))


def _free_scope(taken: set[str]) -> str:
    scope, count = "save", 0
    while any(name == scope or name.startswith(f"{scope}/") for name in taken):
        count += 1
        scope = f"save_{count}"
    return scope


def _slice(variable: Variable) -> str:
    """Returns which part of the tensor in the checkpoint a variable is, as TensorFlow
    writes it; empty for all of it.
    """
    info = variable.save_slice_info
    if info is None:
        return ""
    sizes = " ".join(map(str, info.full_shape))
    return f"{sizes} " + ":".join(f"{o},{s}" for o, s in zip(info.var_offset, info.var_shape, strict=True))
