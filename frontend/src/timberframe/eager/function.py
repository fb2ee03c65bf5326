"""tf.function: Python functions that are traced once for each kind of arguments and then run as graphs."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.variables import Variable, creation_watchers
from timberframe.eager.context import current_graph
from timberframe.eager.execution.calls import trim
from timberframe.eager.execution.traced import FunctionGraph, TracedFunction, effects
from timberframe.eager.tensor_spec import TensorSpec
from timberframe_core import nest
from timberframe_core.arguments import brief
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation, Tensor

_TRACES = 512  # kinds of arguments that one function is kept for
_numbers = itertools.count(1)


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """Makes a Python function one that is traced to a graph, for each kind of arguments once, and runs as that graph.

    A kind is dtype and shape of each tensor (arrays count as tensors), which variable, and the value of each other
    argument. Variables may be made in the first call only. Python's own `if` and `while` on tensors are errors: write
    tf.cond and tf.while_loop. While a graph is built, a call adds the function's operations to it.
    input_signature: TensorSpecs of the arguments, by which it is traced once for all shapes that suit. The other
    arguments are TensorFlow's and change nothing.
    """
    if func is None:
        return functools.partial(
            function, input_signature=input_signature, autograph=autograph,
            experimental_autograph_options=experimental_autograph_options,
            experimental_relax_shapes=experimental_relax_shapes,
        )  # fmt: skip
    if not callable(func):
        raise InvalidTypeError(f"tf.function: {func!r} given; a function is required")
    return Function(func, input_signature)


class Function:
    """A Python function that runs as a graph; see `tf.function`."""

    def __init__(self, python_function: Callable[..., Any], input_signature: Sequence[Any] | None = None) -> None:
        self.python_function = python_function
        self._name = re.sub(r"[^A-Za-z0-9_.]", "_", getattr(python_function, "__name__", "function")).lstrip("_")
        try:
            self._parameters: inspect.Signature | None = inspect.signature(python_function)
        except (TypeError, ValueError):  # built-in functions may have none
            self._parameters = None
        self.input_signature = None if input_signature is None else tuple(input_signature)
        for spec in nest.flatten(self.input_signature or ()):
            if not isinstance(spec, TensorSpec):
                raise InvalidTypeError(
                    f"tf.function '{self._name}': input_signature has {brief(spec)}; tf.TensorSpecs are required"
                )
        self._traces: dict[Any, ConcreteFunction] = {}
        self._made_variables = False
        self._lock = threading.RLock()
        self._bound: dict[int, tuple[weakref.ref[Any], Function]] = {}
        """Methods by the identity of their instances, which need not have a hash."""
        functools.update_wrapper(self, python_function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Returns the function as a method, with traces of its own for each instance."""
        if instance is None:
            return self
        holder, bound = self._bound.get(id(instance), (None, None))
        if bound is None or holder is None or holder() is not instance:
            kept, key = self._bound, id(instance)
            holder = weakref.ref(instance, lambda _: kept.pop(key, None))

            @functools.wraps(self.python_function)
            def method(*args: Any, **kwargs: Any) -> Any:
                return self.python_function(holder(), *args, **kwargs)

            bound = Function(method, self.input_signature)
            parameters = None if self._parameters is None else list(self._parameters.parameters.values())[1:]
            bound._parameters = None if parameters is None else inspect.Signature(parameters)
            self._bound[key] = holder, bound
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not get_default_graph().eager:
            return self.python_function(*args, **kwargs)
        concrete, leaves = self._find(args, kwargs)
        return concrete.run([x for x in leaves if isinstance(x, Tensor)])

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Returns the trace for these arguments; tf.TensorSpecs may stand for tensors."""
        with current_graph().as_default():
            return self._find(args, kwargs)[0]

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ConcreteFunction, list[Any]]:
        """Returns the trace for these arguments, and the leaves of these."""
        arguments = self._with_defaults(args, kwargs)
        if self.input_signature is not None:
            arguments, leaves = self._suited(arguments)
            key: Any = ()
        else:
            leaves = [_leaf(x) for x in nest.flatten(arguments)]
            key = tuple([_kind(self._name, x) for x in leaves]), _outline(arguments)
        key = current_graph().requested_device, *key
        found = self._traces.get(key)
        if found is None:
            with self._lock:
                found = self._traces.get(key)
                if found is None:
                    found = self._trace(arguments, leaves)
                    trim(self._traces, _TRACES)
                    self._traces[key] = found
        return found, leaves

    def _with_defaults(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the arguments in one form, however they were given: (positional ones, named ones)."""
        if self._parameters is None:
            return [list(args), kwargs]
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as e:
            raise InvalidTypeError(f"tf.function '{self._name}': {e}; it takes {self._parameters}") from None
        bound.apply_defaults()
        return [list(bound.args), bound.kwargs]

    def _suited(self, arguments: Any) -> tuple[Any, list[Any]]:
        """Returns the arguments in the form of the input signature, and their leaves as tensors that suit it."""
        signature = list(self.input_signature or ())
        given, named = arguments
        if named or len(given) != len(signature):
            raise InvalidArgumentError(
                f"tf.function '{self._name}': called with {len(given) + len(named)} arguments; its input_signature has "
                f"{len(signature)}"
            )
        leaves = []
        for i, (value, spec) in enumerate(_beside(signature, given)):
            x = value if isinstance(value, TensorSpec) else convert_to_tensor(value, spec.dtype)
            if not spec.is_compatible_with(x):
                raise InvalidArgumentError(
                    f"tf.function '{self._name}': argument {i} is {x.dtype.name} of shape {x.shape}; its "
                    f"input_signature requires {spec!r}"
                )
            leaves.append(x)
        return [signature, {}], leaves

    def _trace(self, arguments: Any, leaves: Sequence[Any]) -> ConcreteFunction:
        specs = leaves if self.input_signature is None else nest.flatten(self.input_signature)
        context = current_graph()
        graph = FunctionGraph(f"{self._name}_{next(_numbers)}", context)
        inputs: list[Tensor] = []
        given: list[Any] = []
        device = context.requested_device or None
        with (
            context.recording(()), graph.as_default(), graph.name_scope(graph.name), graph.device(device),
            self._watching(),
        ):  # fmt: skip
            for i, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
                if isinstance(leaf, Tensor | TensorSpec):
                    label = getattr(spec, "name", None) if isinstance(spec, TensorSpec) else None
                    inputs.append(graph.add_input(spec.dtype, spec.shape, label or f"argument{i}"))
                    given.append(inputs[-1])
                else:
                    given.append(leaf)
            args, kwargs = nest.pack_sequence_as(arguments, given)
            result = self.python_function(*args, **kwargs)
            outputs = [_outputs(self._name, x) for x in nest.flatten(result)]
        self._made_variables = True
        return ConcreteFunction(graph, inputs, outputs, result)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Refuses variables that are made in another trace than the first."""

        def created(variable: Variable) -> None:
            if self._made_variables:
                raise WrongStateError(
                    f"tf.function '{self._name}': makes variable '{variable.name}' in another call than the first; "
                    "make variables once, outside of it or where they do not exist yet"
                )

        creation_watchers.stack.append(created)
        try:
            yield
        finally:
            creation_watchers.remove(created)

    def __repr__(self) -> str:
        return f"<tf.function '{self._name}' with {len(self._traces)} traces>"


class ConcreteFunction:
    """One trace of a function: a graph with inputs and outputs."""

    def __init__(
        self, graph: FunctionGraph, inputs: Sequence[Tensor], outputs: Sequence[list[Tensor]], structure: Any
    ) -> None:
        self.graph = graph
        self.inputs = list(inputs)
        flat = [t for parts in outputs for t in parts]
        with graph.as_default():
            self.outputs = [graph.capture(t) if t.eager else t for t in flat]
        self._counts = [len(parts) for parts in outputs]
        self._leaves = nest.flatten(structure)
        self._structure = structure
        self._traced = TracedFunction(graph, self.inputs, self.outputs, effects(graph))

    @property
    def name(self) -> str:
        """The name of the trace."""
        return self.graph.name

    @property
    def captured_inputs(self) -> list[Any]:
        """The eager tensors, and the handles of variables, that it uses besides its arguments."""
        return [*self.graph.values, *self.graph.handles]

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that it uses."""
        found = [h.spec.variable and h.spec.variable() for h in self.graph.handles]  # type: ignore[attr-defined]  # their specs are ResourceSpecs
        return tuple(v for v in found if v is not None)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those among them that are to be trained."""
        return tuple(v for v in self.variables if v.trainable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs with the tensors of the arguments in order; arguments that are no tensors may be left out."""
        given = [x for x in map(_leaf, nest.flatten([list(args), kwargs])) if isinstance(x, Tensor)]
        if len(given) != len(self.inputs):
            given = [convert_to_tensor(x) for x in nest.flatten([list(args), kwargs])]
        if len(given) != len(self.inputs):
            raise InvalidArgumentError(
                f"function '{self.name}': called with {len(given)} tensors; it takes {len(self.inputs)}"
            )
        for i, (x, wanted) in enumerate(zip(given, self.inputs, strict=True)):
            if x.dtype is not wanted.dtype or not wanted.shape.is_compatible_with(x.shape):
                raise InvalidArgumentError(
                    f"function '{self.name}': argument {i} is {x.dtype.name} of shape {x.shape}; "
                    f"{wanted.dtype.name} of shape {wanted.shape} is required"
                )
        return self.run(given)

    def run(self, tensors: Sequence[Any]) -> Any:
        """Runs with these values of the inputs."""
        flat = iter(self._traced.call(tensors))
        made: list[Any] = []
        for leaf, count in zip(self._leaves, self._counts, strict=True):
            parts = [next(flat) for _ in range(count)]
            made.append(IndexedSlices(*parts) if isinstance(leaf, IndexedSlices) else parts[0] if parts else None)
        return nest.pack_sequence_as(self._structure, made)


def _leaf(value: Any) -> Any:
    """Returns an argument as it counts: arrays are tensors."""
    return convert_to_tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def _beside(specs: Any, values: Any) -> Iterator[tuple[Any, TensorSpec]]:
    """Yields each value with the TensorSpec in its place."""
    if isinstance(specs, TensorSpec):
        yield values, specs
        return
    if not nest.is_nested(values) or len(values) != len(specs):
        raise InvalidArgumentError(f"tf.function: {brief(values)} given; the structure of {brief(specs)} is required")
    for key in sorted(specs) if isinstance(specs, dict) else range(len(specs)):
        yield from _beside(specs[key], values[key])


def _kind(name: str, value: Any) -> Any:
    """Returns what makes an argument need a trace of its own."""
    if isinstance(value, Tensor | TensorSpec):
        shape = value.static_shape if isinstance(value, Tensor) else value.shape.as_tuple()
        return "tensor", value.dtype, shape
    if isinstance(value, Variable):
        return "variable", value.handle
    try:
        hash(value)
    except TypeError:
        raise InvalidTypeError(
            f"tf.function '{name}': an argument is {brief(value)} of type {type(value).__name__}; a tensor, or a "
            "value that can be the key of a dict, is required"
        ) from None
    return type(value), value.hex() if isinstance(value, float) else value


def _outline(structure: Any) -> Any:
    """Returns the form of a structure, without its leaves."""
    if isinstance(structure, dict):
        return "dict", tuple(sorted((k, _outline(v)) for k, v in structure.items()))
    if isinstance(structure, list | tuple):
        return type(structure).__name__, tuple(_outline(v) for v in structure)
    return None


def _outputs(name: str, value: Any) -> list[Tensor]:
    """Returns the tensors of a leaf of a result: none of an operation or None, three of IndexedSlices."""
    if value is None or isinstance(value, Operation):
        return []
    if isinstance(value, IndexedSlices):
        return [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]
    try:
        return [convert_to_tensor(value)]
    except InvalidArgumentError as e:
        raise type(e)(f"tf.function '{name}': a result cannot become a tensor: {e}") from None
