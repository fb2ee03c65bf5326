"""Variables of a GraphDef turned into constants, also where loops, branches and calls use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe.graph_util.extracting import as_graph_def, extract_sub_graph
from timberframe_core import logging
from timberframe_core.dtypes import as_dtype, int32, resource
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_array, encode_shape

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_PASSING = ("Identity", "Enter", "Exit", "Switch", "Merge", "NextIteration")
"""Ops that give a handle on as it is."""

_CALLS = {
    "If": ("Tin", 1, ("then_branch", "else_branch")), "StatelessIf": ("Tin", 1, ("then_branch", "else_branch")),
    "While": ("T", 0, ("cond", "body")), "StatelessWhile": ("T", 0, ("cond", "body")),
    "Case": ("Tin", 1, ("branches",)), "StatelessCase": ("Tin", 1, ("branches",)),
    "PartitionedCall": ("Tin", 0, ("f",)), "StatefulPartitionedCall": ("Tin", 0, ("f",)),
}  # fmt: skip
"""By op: the attr of the types of what its functions get, the first such input, and the attrs of the functions."""


class _Kind(NamedTuple):
    """Dtype (its number) and shape (its message) of a tensor that was a handle."""

    dtype: int
    shape: Any


Held = dict[str, _Kind]
"""References to tensors that were handles, and what they are now."""


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """Returns the part of a GraphDef that output_node_names need, with the values of a
    session's variables as constants.

    variable_names_whitelist: the only variables to convert; variable_names_blacklist: those to leave. Raises
    FailedPreconditionError where a variable has no value, InvalidArgumentError where the part changes one.
    """
    definition = as_graph_def(input_graph_def, "convert_variables_to_constants")
    part = extract_sub_graph(definition, output_node_names)
    only = None if variable_names_whitelist is None else set(variable_names_whitelist)
    left = set(variable_names_blacklist or ())
    names = [
        node.name
        for node in part.node
        if node.op in _VARIABLES and (only is None or node.name in only) and node.name not in left
    ]
    found = sess.read_variables([sess.graph.get_operation_by_name(name) for name in names])
    for name, value in zip(names, found, strict=True):
        if value is None:
            raise FailedPreconditionError(f"Variable '{name}' has no value; initialize it before it becomes a constant")
    values = {name: np.asarray(value) for name, value in zip(names, found, strict=True)}
    logging.info("Froze %d variables.", len(values))
    return _Frozen(part, values).definition


class _Frozen:
    """A GraphDef in which variables have become constants; `definition` is the new one."""

    def __init__(self, given: Any, values: Mapping[str, np.ndarray]) -> None:
        self._functions = {f.signature.name: f for f in given.library.function}
        self._made: dict[str, Any] = {}
        self._values = values
        self.definition = messages.GraphDef()
        self.definition.versions.CopyFrom(given.versions)
        self._convert(given.node, self.definition.node, {}, function=False)
        self._add_functions(given)

    def _add_functions(self, given: Any) -> None:
        """Adds the functions that the new graph still calls."""
        held = {**self._functions, **self._made}
        waiting, wanted = list(self.definition.node), set()
        while waiting:
            for attr in waiting.pop().attr.values():
                for name in [attr.func.name, *(f.name for f in attr.list.func)]:
                    if name in held and name not in wanted:
                        wanted.add(name)
                        waiting += held[name].node_def
        self.definition.library.gradient.extend(given.library.gradient)
        self.definition.library.function.extend(held[name] for name in sorted(wanted))

    def _convert(self, nodes: Any, made: Any, held: Held, function: bool) -> dict[str, str]:
        """Adds the nodes to `made` as they are without handles; references to outputs that have other names now."""
        renamed: dict[str, str] = {}
        for node in nodes:
            copy = made.add()
            copy.CopyFrom(node)
            if node.name in self._values and node.op in _VARIABLES and not function:
                self._make_constant(copy, held)
            elif any(name in held for name in node.input):
                self._use(copy, made, held, function, renamed)
        for node in made:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        return renamed

    def _make_constant(self, node: Any, held: Held) -> None:
        value, kind = self._values[node.name], node.attr["dtype"].type
        if node.op == "VarHandleOp":
            held[node.name] = _Kind(kind, encode_shape(value.shape))
        node.op = "Const"
        node.attr.clear()
        node.attr["dtype"].type = kind
        node.attr["value"].tensor.CopyFrom(encode_array(value, as_dtype(kind)))

    def _use(self, node: Any, made: Any, held: Held, function: bool, renamed: dict[str, str]) -> None:
        """Makes a node that has had a handle work on the value."""
        found = held[next(name for name in node.input if name in held)]
        kind = found.dtype
        if node.op in _PASSING:
            node.attr["T"].type = kind
            held.update(dict.fromkeys(_references(node.name, function), found))
        elif node.op == "ReadVariableOp":
            _become(node, "Identity", {"T": kind})
            renamed[f"{node.name}:value:0"] = f"{node.name}:output:0"
        elif node.op == "ResourceGather" and not node.attr["batch_dims"].i:
            _become(node, "GatherV2", {"Tparams": kind, "Tindices": node.attr["Tindices"].type, "Taxis": int32.number})
            axis = made.add(name=f"{node.name}/axis", op="Const")
            axis.attr["dtype"].type = int32.number
            axis.attr["value"].tensor.CopyFrom(encode_array(np.array(0, np.int32), int32))
            node.input.insert(2, f"{axis.name}:output:0" if function else axis.name)
        elif node.op == "ResourceGatherNd":
            _become(node, "GatherNd", {"Tparams": kind, "Tindices": node.attr["Tindices"].type})
        elif node.op in _CALLS:
            self._call(node, held, function)
        else:
            raise InvalidArgumentError(
                f"{node.op} '{node.name}': uses the variable '{node.input[0]}', which is to become a constant; only "
                "reads and lookups can be converted"
            )

    def _call(self, node: Any, held: Held, function: bool) -> None:
        attr, first, names = _CALLS[node.op]
        kinds = {i: held[name] for i, name in enumerate(node.input[first:]) if name in held}
        for i, kind in kinds.items():
            node.attr[attr].list.type[i] = kind.dtype
            if attr == "T" and node.attr["output_shapes"].list.shape:
                node.attr["output_shapes"].list.shape[i].CopyFrom(kind.shape)
        for name in names:
            functions = node.attr[name].list.func if name == "branches" else [node.attr[name].func]
            for one in functions:
                one.name = self._function(one.name, kinds)
        if attr == "T":  # what a loop carries comes out again
            for i, kind in kinds.items():
                held[f"{node.name}:output:{i}" if function else f"{node.name}:{i}" if i else node.name] = kind

    def _function(self, name: str, kinds: Mapping[int, _Kind]) -> str:
        """Returns the name of a function like this one that gets values where it has got handles."""
        marks = "_".join(map(str, sorted(kinds)))
        made_name = f"{name}_frozen_{marks}"
        if made_name in self._made:
            return made_name
        given = self._functions[name]
        made = self._made[made_name] = messages.FunctionDef()
        made.CopyFrom(given)
        made.signature.name = made_name
        del made.node_def[:]
        held: Held = {}
        for i, kind in kinds.items():
            argument = made.signature.input_arg[i]
            held[argument.name], argument.type = kind, kind.dtype
            del argument.handle_data[:]
            shapes = made.arg_attr[i].attr["_output_shapes"].list.shape
            del shapes[:]
            shapes.append(kind.shape)
        renamed = self._convert(given.node_def, made.node_def, held, function=True)
        for result in made.signature.output_arg:
            reference = made.ret[result.name]
            if reference in held and result.type == resource.number:
                result.type = held[reference].dtype
                del result.handle_data[:]
            made.ret[result.name] = renamed.get(reference, reference)
        return made_name


def _references(name: str, function: bool) -> list[str]:
    """Returns how nodes refer to the outputs of one that gives a tensor on."""
    if function:
        return [f"{name}:{output}:0" for output in ("output", "output_false", "output_true")]
    return [name, f"{name}:1"]


def _become(node: Any, op: str, kinds: Mapping[str, int]) -> None:
    """Makes a node one of another op with these type attrs, in the place where it was."""
    classes = list(node.attr["_class"].list.s) if "_class" in node.attr else []
    node.op = op
    node.attr.clear()
    for name, kind in kinds.items():
        node.attr[name].type = kind
    if classes:
        node.attr["_class"].list.s.extend(classes)
