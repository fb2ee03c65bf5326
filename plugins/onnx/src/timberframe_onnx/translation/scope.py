"""Names and their values in a graph of a model, with those of the graphs around it, and the translation of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto

import timberframe as tf
from timberframe_core.errors import OpError
from timberframe_onnx.elements import name_of
from timberframe_onnx.errors import InvalidModelError, UnknownBeforeRun, Unsupported
from timberframe_onnx.files import NEWEST_OPSETS
from timberframe_onnx.translation.bodies import body_of, defaults_of
from timberframe_onnx.translation.initializers import constant_of
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import Translator, translator
from timberframe_onnx.translation.states import States
from timberframe_onnx.translation.upgrades import upgraded
from timberframe_onnx.translation.values import Coded, Value, contents, wrapped

MOST_NESTED = 60
"""Functions within functions: a model's own functions may not call themselves."""


class _Missing:
    """The output of a node that could not be translated: what is made of it is left out, too, and not reported."""


MISSING = _Missing()


@dataclass
class Translation:
    """What all scopes of one model share.

    functions: the model's own, by domain, name and overload. folder: where external data may lie, None for none.
    failures: a line for each node that cannot be translated. unknown: how many of these
    need no more than fixed shapes of inputs. states: the variables in the place of inputs.
    """

    functions: Mapping[tuple[str, str, str], onnx.FunctionProto]
    folder: Any = None
    failures: list[str] = field(default_factory=list)
    states: States = field(default_factory=States)
    unknown: int = 0


class Scope:
    """The values of one graph's names. Names that it lacks are looked for in the graph around it."""

    def __init__(
        self,
        translation: Translation,
        opsets: Mapping[str, int],
        outer: Scope | None = None,
        depth: int = 0,
        attributes: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        self.translation = translation
        self.opsets = opsets
        self.outer = outer
        self.depth = depth
        self.attributes = attributes or {}
        self.values: dict[str, Value] = {}

    def find(self, name: str) -> Value:
        """Returns the value of a name; raises InvalidModelError where no node, input or initializer makes it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise InvalidModelError(f"value '{name}' is used, but no input, initializer or earlier node makes it")

    def nested(self) -> Scope:
        """Returns the scope of a graph inside a node of this one."""
        return Scope(self.translation, self.opsets, self, self.depth, self.attributes)

    def run_graph(self, graph: onnx.GraphProto, inputs: Iterable[Value] = ()) -> list[Value]:
        """Translates a graph in this scope, its inputs given, and returns its outputs."""
        for proto, value in zip(graph.input, inputs, strict=False):
            self.values[proto.name] = value
        self.add_initializers(graph)
        for node in graph.node:
            self.add_node(node)
        return [self.find(output.name) for output in graph.output]

    def add_initializers(self, graph: onnx.GraphProto) -> None:
        """Adds the constants of a graph, dense and sparse."""
        for tensor in graph.initializer:
            self.values[tensor.name] = self.constant(tensor)
        for sparse in graph.sparse_initializer:
            self.values[sparse.values.name] = self.constant(sparse)

    def constant(self, tensor: TensorProto | onnx.SparseTensorProto) -> Value:
        """Returns the constant of the graph for a tensor of the model."""
        return constant_of(tensor, self.translation.folder)

    def add_node(self, proto: onnx.NodeProto) -> None:
        """Translates one node. What cannot be translated is noted; its outputs and what needs them are left out."""
        names = (proto.op_type, proto.domain, proto.name, *proto.input, *proto.output)
        if not all(isinstance(name, str) for name in names):
            raise InvalidModelError(f"a node has the names {names}; names must be UTF-8")
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = self.opsets.get(domain)
        attributes = {a.name: attribute_value(a) for a in self.attributes_of(proto)}
        node = Node(self, proto.op_type, attributes, list(proto.output), proto.name, domain, opset or 1, proto)
        inputs = [self.find(name) if name else None for name in proto.input]
        outputs: Iterable[Value]
        if any(value is MISSING for value in inputs):
            outputs = [MISSING] * len(proto.output)
        else:
            try:
                if opset is None and (domain, proto.op_type, proto.overload) not in self.translation.functions:
                    raise Unsupported(f"the model imports no opset of domain '{domain}'")
                with tf.name_scope(scope_name(proto.name or proto.op_type)):
                    outputs = translate(node, inputs)
            except Unsupported as e:
                if str(e):
                    self.translation.failures.append(f"{node}: {e}")
                self.translation.unknown += isinstance(e, UnknownBeforeRun)
                outputs = [MISSING] * len(proto.output)
            except OpError as e:
                if isinstance(e, InvalidModelError):
                    raise
                raise InvalidModelError(f"{node}: {e}") from e
        for name, value in zip(proto.output, outputs, strict=False):
            if name:
                self.values[name] = value

    def attributes_of(self, proto: onnx.NodeProto) -> Iterable[AttributeProto]:
        """Yields the attributes of a node; those that refer to an attribute of the function
        around it have its value.
        """
        for a in proto.attribute:
            if not a.ref_attr_name:
                yield a
            elif a.ref_attr_name in self.attributes:
                given = AttributeProto()
                given.CopyFrom(self.attributes[a.ref_attr_name])
                given.name = a.name
                yield given


def scope_name(name: str) -> str:
    """Returns a name that the graph takes for a scope: other characters become underscores."""
    clean = re.sub(r"[^A-Za-z0-9_.\-/]", "_", name).strip("/")
    return clean if re.match(r"[A-Za-z0-9.]", clean) else f"n{clean}"


def attribute_value(attribute: AttributeProto) -> Any:
    """Returns an attribute in Python's types: texts as str where they are UTF-8."""
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return _text(value)
    if attribute.type == AttributeProto.STRINGS:
        return [_text(v) for v in value]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def translate(node: Node, inputs: list[Value]) -> list[Value]:
    """Returns the outputs of a node: by a translator, else by the body of the function that the op is."""
    functions = node.scope.translation.functions
    overload = node.proto.overload if node.proto is not None else ""
    local = functions.get((node.domain, node.op, overload))
    if local is None:
        node, inputs = upgraded(node, inputs)
        found = translator(node.domain, node.op, node.opset)
        if found is not None and (found.suits is None or found.suits(node, inputs)):
            return _translated(found, node, inputs)
    body = local or body_of(node, inputs)
    if body is None:
        raise Unsupported("no translator has this op")
    return _inlined(body, node, inputs)


def _translated(found: Translator, node: Node, inputs: list[Value]) -> list[Value]:
    """Returns the outputs that a translator makes."""
    coded = [v for v in inputs if isinstance(v, Coded)]
    if coded and not (found.moves or found.takes_coded):
        raise Unsupported(f"it has no form for elements of type {name_of(coded[0].element)}")
    try:
        if coded and found.moves:
            made = found.function(node, *(contents(v) for v in inputs))
            outputs = list(made) if isinstance(made, list | tuple) else [made]
            return [wrapped(v, coded[0].element) for v in outputs]
        made = found.function(node, *inputs)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError) as e:
        if isinstance(e, OpError):
            raise
        raise InvalidModelError(f"{node}: {type(e).__name__}: {e}") from e
    return list(made) if isinstance(made, list | tuple) else [made]


def _inlined(body: onnx.FunctionProto, node: Node, inputs: list[Value]) -> list[Value]:
    """Returns the outputs of a function's body in the place of its call."""
    if node.scope.depth >= MOST_NESTED:
        raise InvalidModelError(f"{node}: functions call each other {MOST_NESTED} deep; they may not call themselves")
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in body.opset_import}
    opsets = {"": NEWEST_OPSETS[""], **node.scope.opsets, node.domain: node.opset, **opsets}
    attributes = defaults_of(node) | {a.name: a for a in body.attribute_proto}
    if node.proto is not None:
        attributes |= {a.name: a for a in node.scope.attributes_of(node.proto)}
    scope = Scope(node.scope.translation, opsets, None, node.scope.depth + 1, attributes)
    for i, name in enumerate(body.input):
        scope.values[name] = inputs[i] if i < len(inputs) else None
    for proto in body.node:
        scope.add_node(proto)
    return [scope.find(name) if node.wants(i) else None for i, name in enumerate(body.output)]
