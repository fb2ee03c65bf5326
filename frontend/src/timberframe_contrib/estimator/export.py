"""`tf.estimator.export`: what an exported model takes, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from timberframe.api.examples import parse_example
from timberframe.api.framework import placeholder
from timberframe_contrib.estimator.export_outputs import ClassificationOutput as ClassificationOutput
from timberframe_contrib.estimator.export_outputs import ExportOutput as ExportOutput
from timberframe_contrib.estimator.export_outputs import PredictOutput as PredictOutput
from timberframe_contrib.estimator.export_outputs import RegressionOutput as RegressionOutput
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Tensor


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_Receiver):
    """What an exported model takes.

    features: what model_fn gets, a tensor or a dict of tensors. receiver_tensors: what is fed for them, the same or
    others: a tensor, or a dict by name. receiver_tensors_alternatives: further ones, a dict of dicts.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        for name, value in features.items() if isinstance(features, Mapping) else (("feature", features),):
            if not hasattr(value, "dtype"):
                raise InvalidTypeError(
                    f"ServingInputReceiver: feature '{name}' is a {type(value).__name__}; a tensor is required"
                )
        receivers = receiver_tensors if isinstance(receiver_tensors, Mapping) else {"input": receiver_tensors}
        for name, value in receivers.items():
            if not isinstance(value, Tensor):
                raise InvalidTypeError(
                    f"ServingInputReceiver: receiver tensor '{name}' is a {type(value).__name__}; a tensor is required"
                )
        if receiver_tensors_alternatives is not None and not isinstance(receiver_tensors_alternatives, Mapping):
            raise InvalidTypeError(
                "ServingInputReceiver: receiver_tensors_alternatives is a "
                f"{type(receiver_tensors_alternatives).__name__}; a dict of dicts of tensors is required"
            )
        return super().__new__(cls, features, dict(receivers), receiver_tensors_alternatives)


class TensorServingInputReceiver(ServingInputReceiver):
    """A ServingInputReceiver whose features are one tensor."""

    __slots__ = ()


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes placeholders like these features, fed by their names.

    features: tensors or arrays by name, of shape [batch, ...]. default_batch_size: the size of the batch, any if None.
    """

    def receive() -> ServingInputReceiver:
        placeholders = {}
        for name, like in features.items():
            tensor = convert_to_tensor(like)
            sizes = tensor.shape.as_list()
            if not sizes:
                raise InvalidArgumentError(
                    f"build_raw_serving_input_receiver_fn: feature '{name}' is a scalar; a batch is required"
                )
            placeholders[name] = placeholder(tensor.dtype, [default_batch_size, *sizes[1:]], name=str(name))
        return ServingInputReceiver(placeholders, placeholders)

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a placeholder of serialised tf.train.Examples, and parses them.

    feature_spec: as for `tf.parse_example`. default_batch_size: the size of the batch, any if None.
    """

    def receive() -> ServingInputReceiver:
        examples = placeholder(string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example(examples, feature_spec), {"examples": examples})

    return receive
