"""Reference variables as resource variables.

A reference tensor stands for the variable, so who wants its value reads the variable where he stands, and a write
hands on the variable. So does Identity: TensorFlow's does not copy a variable, writes are in place, and graphs rely on
it, for the value of a tf.Variable is such an Identity. Only the order that edges give is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnimplementedError
from timberframe_core.graph.growth import initial_shape
from timberframe_core.graph.inference import arg_dtypes
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.signature import ArgDef
from timberframe_core.shapes import Shape, is_static

if TYPE_CHECKING:
    from timberframe_ops.passes.raising.scope import Scope


@dataclass(frozen=True)
class Reference:
    """What a reference tensor stands for: the handle of the variable, and dtype and declared shape of its value."""

    handle: Tensor
    dtype: DType
    shape: Shape

    @property
    def empty(self) -> bool:
        """Whether the value is known to have no elements, and so what it is."""
        return is_static(self.shape) and 0 in (self.shape or ())


def flat_args(args: tuple[ArgDef, ...], attrs: dict[str, Any]) -> list[ArgDef]:
    """Returns the declared argument of each flat input or output."""
    return [arg for arg in args for _ in arg_dtypes((arg,), attrs)]


def emit_reference(scope: Scope, op: Operation) -> None:
    """Adds what takes the place of an operation that makes, writes or looks at a reference variable."""
    if op.op_def.resource_op:
        _emit_access(scope, op)
    elif op.type == "DestroyTemporaryVariable":
        _emit_destroy(scope, op)
    elif op.type == "Stack":
        _emit_stack(scope, op)
    elif op.type == "RefIdentity":
        scope.set(op.outputs[0], _reference(scope, op, 0))
        scope.wait_for_inputs(op)
    elif op.type == "RefSelect":
        _emit_select(scope, op)
    else:
        _emit_variable(scope, op)


def _emit_variable(scope: Scope, op: Operation) -> None:
    """Emits a handle. It stands outside of all loops and branches, so that all of them mean one variable."""
    attrs = op.attrs
    temporary = op.type == "TemporaryVariable"
    shared = attrs["var_name" if temporary else "shared_name"] or op.name
    if temporary:
        if shared in scope.raising.temporary:
            raise AlreadyExistsError(
                f"{op.type} '{op.name}': temporary variable '{shared}' exists already; each needs a name of its own",
                op.name,
            )
        scope.raising.temporary.add(shared)
    outside = scope.root
    declared = op.outputs[0].static_shape
    changes = op.outputs[0] in scope.raising.unvalidated
    shape = None if changes else declared
    begins = initial_shape(declared) if changes or 0 in (declared or ()) else {}
    made = outside.graph.create_op(
        registry.get("VarHandleOp"),
        [],
        {
            "dtype": attrs["dtype"],
            "shape": shape,
            **begins,
            "container": attrs.get("container", ""),
            "shared_name": f"_temporary/{shared}" if temporary else shared,
        },
        outside.free_name(op.name),
        device=op.device,
        colocation=op.colocation,
        exact_name=True,
    )
    made._where = op._where
    scope.set(op.outputs[0], Reference(made.outputs[0], attrs["dtype"], shape))
    scope.ran[op] = (made,) if outside is scope else ()


def _emit_stack(scope: Scope, op: Operation) -> None:
    """Emits a stack of any size."""
    made = scope.add(op, "StackV2", [scope.constant(np.int32(-1), f"{op.name}/_size")], dict(op.attrs))
    scope.set(op.outputs[0], Reference(made.outputs[0], op.attrs["elem_type"], None))


def _reference(scope: Scope, op: Operation, i: int) -> Reference:
    found, source = scope.find(op.inputs[i]), op.inputs[i].op
    declared = flat_args(source.op_def.outputs, source.attrs)[op.inputs[i].value_index]
    if not isinstance(found, Reference) or not declared.is_ref:
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': input {i} ('{op.inputs[i].name}') is a value; a reference to a variable is "
            "required",
            op.name,
        )
    return found


def _emit_access(scope: Scope, op: Operation) -> None:
    """Emits the resource op that does the same."""
    name = op.op_def.resource_op
    op_def = registry.find(name)
    if op_def is None:
        raise UnimplementedError(
            f"{op.type} '{op.name}': is carried out by op {name}; no such op is registered", op.name
        )
    declared = flat_args(op.op_def.inputs, op.attrs)
    references = {i: _reference(scope, op, i) for i, arg in enumerate(declared) if arg.is_ref}
    if op.type == "IsVariableInitialized" and references[0].empty:
        scope.set(op.outputs[0], scope.constant(np.bool_(True), op.name))
        scope.wait_for_inputs(op)
        return
    inputs = [references[i].handle if i in references else scope.value(op, i) for i in range(len(op.inputs))]
    attrs = {k: v for k, v in op.attrs.items() if k in op_def.attrs}
    if "dtype" in op_def.attrs:
        attrs["dtype"] = op.attrs.get("dtype", op.attrs.get("T"))
    made = scope.add(op, op_def.name, inputs, attrs)
    results = iter(made.outputs)
    for tensor, arg in zip(op.outputs, flat_args(op.op_def.outputs, op.attrs), strict=True):
        scope.set(tensor, references[0] if arg.is_ref else next(results))


def _emit_destroy(scope: Scope, op: Operation) -> None:
    """Emits the last value, read before the variable goes."""
    reference = _reference(scope, op, 0)
    name = op.attrs["var_name"]
    if name not in scope.raising.temporary:
        raise NotFoundError(
            f"{op.type} '{op.name}': temporary variable '{name}' does not exist; it must have been made",
            op.name,
        )
    scope.raising.temporary.remove(name)
    value = scope.read(op, op.inputs[0])
    gone = scope.add(op, "DestroyResourceOp", [reference.handle], {"ignore_lookup_error": True}, after=(value.op,))
    scope.set(op.outputs[0], value)
    scope.ran[op] = (gone, value.op)


def _emit_select(scope: Scope, op: Operation) -> None:
    """Emits the reference that a constant index chooses, or that all inputs are."""
    choices = [_reference(scope, op, i) for i in range(1, len(op.inputs))]
    index = op.inputs[0].host_value
    if index is not None and index.shape == () and 0 <= int(index) < len(choices):
        scope.set(op.outputs[0], choices[int(index)])
    elif all(c == choices[0] for c in choices):
        scope.set(op.outputs[0], choices[0])
    else:
        raise UnimplementedError(
            f"{op.type} '{op.name}': chooses among different variables by a computed index; it must be a constant",
            op.name,
        )
    scope.wait_for_inputs(op)
