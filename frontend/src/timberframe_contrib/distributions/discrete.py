"""Distributions of integers: Bernoulli and Categorical."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat, expand_dims, reshape, transpose
from timberframe.api.comparison import greater, less
from timberframe.api.constants import zeros_like
from timberframe.api.cross_entropy import sigmoid_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits
from timberframe.api.random import multinomial, random_uniform
from timberframe.api.reduction import argmax, reduce_sum
from timberframe.api.selection import cast
from timberframe.api.softmax import log_softmax, softmax
from timberframe.api.unary import log, log1p, sigmoid, softplus
from timberframe_contrib.distributions.distribution import NOT_REPARAMETERIZED, OfVectors, Scalar, parameter
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape


def logits_and_probs(owner: str, logits: Any, probs: Any, of_classes: bool) -> tuple[Any, Any]:
    """Returns both, of the one that is given.

    of_classes: the last dimension has classes, whose probabilities' sum is 1.
    """
    if (logits is None) == (probs is None):
        given = "neither" if logits is None else "both"
        raise InvalidArgumentError(f"tf.distributions.{owner}: {given} of logits and probs given; one is required")
    if logits is not None:
        (found,) = parameter(owner, logits=logits)
        return found, softmax(found) if of_classes else sigmoid(found)
    (found,) = parameter(owner, probs=probs)
    return log(found) if of_classes else log(found) - log1p(-found), found


class Bernoulli(Scalar):
    """1 with probability probs, or sigmoid(logits), and 0 otherwise. dtype: of the samples."""

    _parameter_names = ("logits",)

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        parameters = dict(locals())
        self.logits, self.probs = logits_and_probs("Bernoulli", logits, probs, of_classes=False)
        super().__init__(
            [self.logits], NOT_REPARAMETERIZED, validate_args=validate_args, allow_nan_stats=allow_nan_stats,
            parameters=parameters, name=name,
        )  # fmt: skip
        self._dtype = as_dtype(dtype)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        drawn = random_uniform(self._sizes(n), dtype=self.probs.dtype, seed=seed)
        return cast(less(drawn, self.probs), self.dtype)

    def _log_prob(self, event: Any) -> Any:
        event = cast(event, self.logits.dtype)
        zeros = zeros_like(event + self.logits)
        loss: Any = sigmoid_cross_entropy_with_logits(labels=event + zeros, logits=self.logits + zeros)
        return -loss

    def _entropy(self) -> Any:
        return self.logits * (1.0 - self.probs) + softplus(-self.logits)

    def _mean(self) -> Any:
        return self.probs + zeros_like(self.probs)

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Any:
        return cast(greater(self.probs, 0.5), self.dtype)


class Categorical(OfVectors):
    """The number of a class: its probability is probs[..., class], or softmax(logits)[..., class].

    dtype: of the samples.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        parameters = dict(locals())
        self.logits, self.probs = logits_and_probs("Categorical", logits, probs, of_classes=True)
        super().__init__(
            as_dtype(dtype), self.logits, NOT_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    @property
    def event_size(self) -> Any:
        """The number of classes."""
        return self._classes

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return self._batch_shape_tensor()[:0]

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        rows = multinomial(reshape(self.logits, [-1, self._classes]), n, seed, output_dtype=self.dtype)
        return reshape(transpose(rows), concat([reshape(n, [1]), self._batch_shape_tensor()], 0))

    def _log_prob(self, event: Any) -> Any:
        zeros = zeros_like(cast(event, self.logits.dtype))
        logits = self.logits + expand_dims(zeros, -1)
        event = cast(event, int32) + zeros_like(argmax(logits, -1, output_type=int32))
        loss: Any = sparse_softmax_cross_entropy_with_logits(labels=event, logits=logits)
        return -loss

    def _entropy(self) -> Any:
        logarithms: Any = log_softmax(self.logits)
        return reduce_sum(-logarithms * self.probs, -1)

    def _mode(self) -> Any:
        found = cast(argmax(self.logits, -1), self.dtype)
        found.set_shape(TensorShape(self._batch_shape()))
        return found
