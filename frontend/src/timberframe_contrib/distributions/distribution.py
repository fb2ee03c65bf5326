"""Distribution: what all probability distributions have; each kind defines methods whose names begin with `_`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.arithmetic import broadcast_dynamic_shape
from timberframe.api.arrays import broadcast_static_shape, concat, identity, reshape, shape
from timberframe.api.constants import ones
from timberframe.api.framework import control_dependencies, convert_to_tensor, get_static_value, name_scope
from timberframe.api.reduction import reduce_prod
from timberframe.api.unary import exp, log, log1p, sqrt, square
from timberframe_contrib.distributions.divergence import kl_divergence
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class ReparameterizationType:
    """Whether samples have gradients with respect to the parameters."""

    def __init__(self, rep_type: str) -> None:
        self._text = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._text}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """Base of probability distributions, one for each element of a batch.

    dtype: of the samples. parameters: the arguments that the constructor was called with. validate_args: wrong values
    of parameters and of arguments are errors in runs. allow_nan_stats: what is not defined, such as the mean of
    Student's t with one degree of freedom, is NaN and no error. A distribution of the user's own defines `_sample_n`,
    `_log_prob` or `_prob`, `_batch_shape_tensor`, `_event_shape_tensor` and what else it has.
    """

    _parameter_names: tuple[str, ...] = ()

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: Mapping[str, Any] | None = None,
        graph_parents: Iterable[Any] | None = None,
        name: str | None = None,
    ) -> None:
        self._dtype, self._reparameterization_type = dtype, reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {k: v for k, v in (parameters or {}).items() if k != "self" and not k.startswith("__")}
        self._graph_parents = list(graph_parents or [])
        with name_scope(name or type(self).__name__) as scope:
            self._name = scope

    @property
    def name(self) -> str:
        """The name scope of its operations, with a slash at the end."""
        return self._name

    @property
    def dtype(self) -> Any:
        """Of the samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether samples have gradients with respect to the parameters."""
        return self._reparameterization_type

    @property
    def validate_args(self) -> bool:
        """Whether wrong values are errors in runs."""
        return self._validate_args

    @property
    def allow_nan_stats(self) -> bool:
        """Whether what is not defined is NaN."""
        return self._allow_nan_stats

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Any]:
        """Returns shapes, as tensors, that parameters may have so that a sample has this shape."""
        with name_scope(name):
            return {n: convert_to_tensor(sample_shape, int32) for n in cls._names_of_parameters()}

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """Returns shapes that parameters may have so that a sample has this shape, which must be known."""
        shape = TensorShape(get_static_value(sample_shape) if isinstance(sample_shape, Tensor) else sample_shape)
        if not shape.is_fully_defined():
            raise InvalidArgumentError(f"{cls.__name__}: sample_shape is {shape}; every size must be known")
        return dict.fromkeys(cls._names_of_parameters(), shape)

    @classmethod
    def _names_of_parameters(cls) -> tuple[str, ...]:
        """Parameters that have the shape of a sample."""
        if not cls._parameter_names:
            raise UnimplementedError(f"{cls.__name__}: says no shapes of parameters; give them to the constructor")
        return cls._parameter_names

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """Returns the same distribution with some other arguments of the constructor."""
        return type(self)(**{**self._parameters, **override_parameters_kwargs})

    def __repr__(self) -> str:
        return (
            f"<tf.distributions.{type(self).__name__} '{self.name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={getattr(self.dtype, 'name', self.dtype)}>"
        )

    # Shapes

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the parameters' batch, as far as it is known."""
        return TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one sample of one distribution, as far as it is known."""
        return TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """Returns the shape of the batch, int32."""
        with self._scope(name):
            return convert_to_tensor(self._batch_shape_tensor(), int32)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """Returns the shape of one sample of one distribution, int32."""
        with self._scope(name):
            return convert_to_tensor(self._event_shape_tensor(), int32)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        """Returns whether there is one distribution, a bool."""
        return self._is_scalar(self.batch_shape, self.batch_shape_tensor, name)

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        """Returns whether samples are numbers, a bool."""
        return self._is_scalar(self.event_shape, self.event_shape_tensor, name)

    def _is_scalar(self, known: TensorShape, sizes: Callable[[], Any], name: str) -> Any:
        with self._scope(name):
            if known.ndims is not None:
                return convert_to_tensor(known.ndims == 0)
            return apply_op("Equal", [apply_op("Size", [sizes()]), 0])

    # Samples

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Samples [*sample_shape, *batch, *event]. sample_shape: a number, or a vector of sizes."""
        with self._scope(name):
            sizes = convert_to_tensor(sample_shape, int32) if sample_shape != () else convert_to_tensor([], int32)
            if sizes.shape.ndims == 0:
                sizes = reshape(sizes, [1])
            drawn = self._sample_n(reduce_prod(sizes), seed)
            result = reshape(drawn, concat([sizes, shape(drawn)[1:]], 0))
            if isinstance(sample_shape, int | tuple | list | TensorShape):
                before = [sample_shape] if isinstance(sample_shape, int) else list(TensorShape(sample_shape))
                result.set_shape(TensorShape(before).concatenate(self.batch_shape).concatenate(self.event_shape))
            return result

    # Functions of a value

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """log of the probability (density) of a value, [*samples, *batch]."""
        return self._of(value, name, ("_log_prob", None), ("_prob", log))

    def prob(self, value: Any, name: str = "prob") -> Any:
        """Returns the probability (density) of a value."""
        return self._of(value, name, ("_prob", None), ("_log_prob", exp))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """Returns the probability of a sample that is not above a value."""
        return self._of(value, name, ("_cdf", None), ("_log_cdf", exp))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """log of `cdf`."""
        return self._of(value, name, ("_log_cdf", None), ("_cdf", log))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """Returns the probability of a sample above a value."""
        return self._of(value, name, ("_survival_function", None), ("_cdf", lambda y: 1.0 - y))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """log of `survival_function`."""
        return self._of(value, name, ("_log_survival_function", None), ("_cdf", lambda y: log1p(-y)))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """Returns the number that samples do not exceed with a given probability."""
        return self._of(value, name, ("_quantile", None))

    # Statistics

    def entropy(self, name: str = "entropy") -> Any:
        """Returns the entropy in nats."""
        return self._statistic(name, ("_entropy", None))

    def mean(self, name: str = "mean") -> Any:
        """Returns the mean."""
        return self._statistic(name, ("_mean", None))

    def mode(self, name: str = "mode") -> Any:
        """Returns the value of the highest probability (density)."""
        return self._statistic(name, ("_mode", None))

    def variance(self, name: str = "variance") -> Any:
        """Returns the variance."""
        return self._statistic(name, ("_variance", None), ("_stddev", square))

    def stddev(self, name: str = "stddev") -> Any:
        """Returns the standard deviation."""
        return self._statistic(name, ("_stddev", None), ("_variance", sqrt))

    def covariance(self, name: str = "covariance") -> Any:
        """Returns the covariance of the elements of a sample, [*batch, event, event]."""
        return self._statistic(name, ("_covariance", None))

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """Returns the entropy and the divergence from another distribution together."""
        with self._scope(name):
            return self.entropy() + self.kl_divergence(other)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """Returns the Kullback-Leibler divergence of another distribution from this one."""
        with self._scope(name):
            return kl_divergence(self, other, self._allow_nan_stats)

    # What kinds use

    def _event_shape(self) -> Any:
        return None

    def _batch_shape(self) -> Any:
        return None

    def _event_shape_tensor(self) -> Any:
        raise self._lacks("event_shape_tensor")

    def _batch_shape_tensor(self) -> Any:
        raise self._lacks("batch_shape_tensor")

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        """Samples [n, *batch, *event]."""
        raise self._lacks("sample")

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{name} is not implemented: {type(self).__name__}")

    @contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with name_scope(self._name), name_scope(name):
            yield

    def _of(self, value: Any, name: str, *ways: tuple[str, Callable[[Any], Any] | None]) -> Any:
        """Returns what the first of some methods that the kind has gives for a value, made into what is wanted."""
        with self._scope(name):
            given = convert_to_tensor(value, dtype_hint(value, self._dtype), "value")
            return self._first(name, ways, given)

    def _statistic(self, name: str, *ways: tuple[str, Callable[[Any], Any] | None]) -> Any:
        with self._scope(name):
            return self._first(name, ways)

    def _first(self, name: str, ways: Iterable[tuple[str, Callable[[Any], Any] | None]], *arguments: Any) -> Any:
        for method, then in ways:
            found = getattr(self, method, None)
            if found is not None:
                result = found(*arguments)
                return result if then is None else then(result)
        raise self._lacks(name)

    def _checked(self, tensor: Any, *assertions: Callable[[Any], Any]) -> Any:
        """Returns a tensor of which some things are asserted in runs, if validate_args is set."""
        if not self._validate_args:
            return tensor
        with control_dependencies([check(tensor) for check in assertions]):
            return identity(tensor)


class Scalar(Distribution):
    """Base of distributions of single numbers, whose batch is what their parameters broadcast to."""

    def __init__(self, tensors: Iterable[Any], kind: ReparameterizationType, **settings: Any) -> None:
        self._tensors = list(tensors)
        super().__init__(self._tensors[0].dtype, kind, graph_parents=self._tensors, **settings)

    def _batch_shape(self) -> Any:
        known = self._tensors[0].shape
        for tensor in self._tensors[1:]:
            known = broadcast_static_shape(known, tensor.shape)
        return known

    def _batch_shape_tensor(self) -> Any:
        sizes = shape(self._tensors[0])
        for tensor in self._tensors[1:]:
            sizes = broadcast_dynamic_shape(sizes, shape(tensor))
        return sizes

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return convert_to_tensor([], int32)

    def _sizes(self, n: Any) -> Any:
        """[n, *batch]."""
        return concat([reshape(n, [1]), self._batch_shape_tensor()], 0)

    def _whole(self, statistic: Any) -> Any:
        """Returns a statistic of some parameters, for the whole batch."""
        return statistic * ones(self._batch_shape_tensor(), statistic.dtype)


class OfVectors(Distribution):
    """Base of distributions with a vector of parameters each, [*batch, classes]; samples are vectors as long."""

    def __init__(
        self, dtype: Any, vectors: Any, kind: ReparameterizationType, others: Iterable[Any] = (), **settings: Any
    ) -> None:
        self._vectors, self._classes = vectors, shape(vectors)[-1]
        super().__init__(dtype, kind, graph_parents=[vectors, *others], **settings)

    def _batch_shape(self) -> Any:
        return self._vectors.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return shape(self._vectors)[:-1]

    def _event_shape(self) -> Any:
        return self._vectors.shape[-1:]

    def _event_shape_tensor(self) -> Any:
        return shape(self._vectors)[-1:]


def new_seed(seed: int | None, salt: str) -> int | None:
    """Returns the seed of a further draw of one sample, as TensorFlow makes it: of the MD5 of seed and salt 31 bits."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


def dtype_hint(value: Any, dtype: Any) -> Any:
    """Returns the dtype of a distribution for values that have none of their own."""
    return None if hasattr(value, "dtype") else dtype


def parameter(owner: str, **given: Any) -> list[Any]:
    """Parameters as tensors of one floating dtype, that of the first that has one and float32 otherwise."""
    tensors = {name: value for name, value in given.items() if hasattr(value, "dtype")}
    dtype = next((convert_to_tensor(v).dtype.base_dtype for v in tensors.values()), None)
    result = [convert_to_tensor(v, dtype or _float(v), name) for name, v in given.items()]
    if any(not t.dtype.is_floating for t in result):
        wrong = ", ".join(f"{n} is {t.dtype.name}" for n, t in zip(given, result, strict=True))
        raise InvalidArgumentError(f"tf.distributions.{owner}: {wrong}; floating parameters are required")
    return result


def _float(value: Any) -> Any:
    return "float32" if np.asarray(value).dtype.kind == "f" else None
