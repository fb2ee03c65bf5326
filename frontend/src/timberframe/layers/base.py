"""Layer: a part of a network that makes its variables when it first sees an input."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, add_to_collection, name_scope
from timberframe.api.variable_scope import VariableScope, get_variable, variable_scope
from timberframe.api.variables import Variable
from timberframe.layers.named import weight_functions
from timberframe.saving.trackable import Trackable
from timberframe_core import nest
from timberframe_core.dtypes import DType, as_dtype, float32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape


class InputSpec:
    """What a layer requires of an input: its rank, the least rank, or sizes of some axes."""

    def __init__(
        self, ndim: int | None = None, min_ndim: int | None = None, axes: dict[int, int | None] | None = None
    ) -> None:
        self.ndim = ndim
        self.min_ndim = min_ndim
        self.axes = dict(axes or {})

    def check(self, layer: str, x: Tensor) -> None:
        """Raises InvalidArgumentError where a known shape does not fit."""
        shape = x.static_shape
        if shape is None:
            return
        if self.ndim is not None and len(shape) != self.ndim:
            raise InvalidArgumentError(
                f"layer '{layer}': input '{x.name}' has shape {format_shape(shape)}; rank {self.ndim} is required"
            )
        if self.min_ndim is not None and len(shape) < self.min_ndim:
            raise InvalidArgumentError(
                f"layer '{layer}': input '{x.name}' has shape {format_shape(shape)}; "
                f"rank {self.min_ndim} or more is required"
            )
        for axis, size in self.axes.items():
            if size is not None and shape[axis] not in (None, size):
                raise InvalidArgumentError(
                    f"layer '{layer}': input '{x.name}' has shape {format_shape(shape)}; "
                    f"size {size} is required along axis {axis}"
                )


class Layer(Trackable):
    """Base of layers: `build` makes variables for the shape of the first input, `call` computes.

    trainable: whether optimizers change its variables. name: of its variable scope; by default that of the class in
    small letters, made unique. dtype: of its variables; by default that of the first input. `_scope` and `_reuse` are
    how the functions of `tf.layers` open a scope by a given name and use its variables again.
    """

    _untracked = ("_variables",)

    updates_collections: Sequence[str] = (GraphKeys.UPDATE_OPS,)
    """Which collections its updates join."""

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        _scope: str | VariableScope | None = None,
        _reuse: Any = None,
    ) -> None:
        self.trainable = trainable
        self.built = False
        self.input_spec: InputSpec | Sequence[InputSpec] | None = None
        self.activity_regularizer = activity_regularizer
        self._dtype: DType | None = None if dtype is None else as_dtype(dtype).base_dtype
        self._base_name = name or _small_letters(type(self).__name__)
        self._scope: VariableScope | None = None
        self._reuse = _reuse
        self._variables: list[Variable] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._current: VariableScope | None = None
        if _scope:
            self._scope = variable_scope(_scope).peek()

    @property
    def name(self) -> str:
        """Name of its variable scope, without the scopes around it, or what that will be made from."""
        return self._base_name if self._scope is None else self._scope.name.rpartition("/")[2]

    @property
    def scope_name(self) -> str:
        """Name of its variable scope; WrongStateError before the first call."""
        if self._scope is None:
            raise WrongStateError(f"layer '{self._base_name}': has no scope before its first call; call it")
        return self._scope.name

    @property
    def dtype(self) -> str | None:
        """Name of the dtype of its variables, None before the first input where none was given."""
        return None if self._dtype is None else self._dtype.name

    @property
    def variables(self) -> list[Variable]:
        """Trainable variables, then the others."""
        return self.trainable_variables + self.non_trainable_variables

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that are to be trained."""
        return [v for v in self._variables if v.trainable] if self.trainable else []

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The variables that are not to be trained."""
        return [v for v in self._variables if not (self.trainable and v.trainable)]

    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list[Tensor]:
        """Losses of its regularizers."""
        return [x() if callable(x) else x for x in self._losses]

    @property
    def updates(self) -> list[Any]:
        """Operations that must run with each training step."""
        return self._updates

    def build(self, input_shape: Any) -> None:
        """Makes the variables. input_shape: a TensorShape, or such in the structure of the inputs."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """Returns the shape of the output for the shape of an input."""
        raise NotImplementedError

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        partitioner: Any = None,
    ) -> Variable:
        """Returns a variable of the layer, or with reuse the one that exists; to be called in `build`."""
        owner = f"layer '{self.name}', variable '{name}'"
        initializer, regularizer, constraint = weight_functions(owner, initializer, regularizer, constraint)
        recorded = None if regularizer is None else functools.partial(self._record_loss, regularizer)
        variable: Variable = get_variable(
            name, shape, dtype or self._dtype or float32, initializer, recorded,
            trainable=self.trainable and trainable is not False, partitioner=partitioner, use_resource=use_resource,
            constraint=constraint,
        )  # fmt: skip
        if not any(v is variable for v in self._variables):
            self._variables.append(variable)
        return variable

    add_variable = add_weight

    def require_numbers(self) -> None:
        """Raises InvalidTypeError where the dtype of the variables is neither floating nor complex."""
        if self._dtype is not None and not (self._dtype.is_floating or self._dtype.is_complex):
            raise InvalidTypeError(
                f"layer '{self.name}': the inputs have dtype {self._dtype.name}; a floating or complex dtype is "
                "required"
            )

    def _record_loss(self, regularizer: Callable[[Any], Any], variable: Variable) -> Any:
        if get_default_graph().eager:
            self._losses.append(functools.partial(regularizer, variable))  # of the value that it then has
            return None
        loss = regularizer(variable)
        if loss is not None:
            self._losses.append(loss)
        return loss

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses to the layer's and to GraphKeys.REGULARIZATION_LOSSES; those that are None are left out."""
        made = [x for x in (losses if isinstance(losses, list | tuple) else [losses]) if x is not None]
        self._losses += made
        for loss in made:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations to the layer's and to GraphKeys.UPDATE_OPS, or to what `updates_collections` says."""
        if get_default_graph().eager:
            return  # they have run
        made = list(updates) if isinstance(updates, list | tuple) else [updates]
        self._updates += made
        for update in made:
            for key in self.updates_collections:
                add_to_collection(key, update)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs for inputs, a tensor or a structure of such; the first time it makes the variables."""
        self._open_scope(kwargs.pop("scope", None))
        assert self._scope is not None
        if get_default_graph().eager:
            self._losses = [x for x in self._losses if callable(x)]  # those of activities are of one call
        given = nest.map_structure(convert_to_tensor, inputs)
        reuse = True if self.built else self._reuse
        with (
            variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope,
            name_scope(scope.original_name_scope),
        ):
            self._check(given)
            if not self.built:
                self._build(given)
            outputs = self.call(given, *args, **kwargs)
            self._regularize_activity(outputs)
        return outputs

    apply = __call__

    def _open_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            opened = variable_scope(self._base_name if scope is None else scope)
        else:
            opened = variable_scope(scope, default_name=self._base_name)
        with opened as made:
            self._scope = made

    def _check(self, inputs: Any) -> None:
        if self.input_spec is None:
            return
        specs = self.input_spec if isinstance(self.input_spec, list | tuple) else [self.input_spec]
        for spec, x in zip(specs, nest.flatten(inputs), strict=False):
            spec.check(self.name, x)

    def _build(self, inputs: Any) -> None:
        first = nest.flatten(inputs)[0]
        if self._dtype is None:
            self._dtype = first.dtype.base_dtype
        self.build(nest.map_structure(lambda x: x.shape, inputs))
        self.built = True
        self._check(inputs)

    def _regularize_activity(self, outputs: Any) -> None:
        if self.activity_regularizer is not None:
            for x in nest.flatten(outputs):
                with name_scope("ActivityRegularizer"):
                    self.add_loss(self.activity_regularizer(x))


def known_size(layer: str, shape: Any, axis: int) -> int:
    """Returns the size of a shape along an axis; InvalidArgumentError where it is unknown."""
    sizes = TensorShape(shape).as_tuple()
    size = None if sizes is None else sizes[axis]
    if size is None:
        raise InvalidArgumentError(
            f"layer '{layer}': the input has shape {format_shape(sizes)}; its size along axis {axis} must be known"
        )
    return size


def _small_letters(name: str) -> str:
    """Returns the name of a class in small letters: `MaxPooling2D` is `max_pooling2d`."""
    split = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()
