"""What an exported model gives: ExportOutputs, which become signatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from timberframe.api.variables import Variable
from timberframe.saved_model.constants import (
    CLASSIFY_METHOD_NAME,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    PREDICT_METHOD_NAME,
    REGRESS_METHOD_NAME,
)
from timberframe.saved_model.signatures import signature_def_of_tensors
from timberframe_core import logging
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor


class ExportOutput(ABC):
    """What one signature of an exported model gives."""

    @abstractmethod
    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns the SignatureDef. receiver_tensors: what is fed, by name."""


class PredictOutput(ExportOutput):
    """Tensors by name; a tensor alone has the name `output`."""

    def __init__(self, outputs: Any) -> None:
        self._outputs = _by_name(outputs, "output")

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns a SignatureDef for predictions, with all inputs."""
        return signature_def_of_tensors(receiver_tensors, self._outputs, PREDICT_METHOD_NAME)


class ClassificationOutput(ExportOutput):
    """Scores (floats), names of classes (strings), or both: of shape [batch, classes]."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise InvalidArgumentError("ClassificationOutput: neither scores nor classes given; one is required")
        if scores is not None and not convert_to_tensor(scores).dtype.is_floating:
            raise InvalidArgumentError(
                f"ClassificationOutput: scores have dtype {scores.dtype.name}; a floating dtype is required"
            )
        if classes is not None and convert_to_tensor(classes).dtype is not string:
            raise InvalidArgumentError(
                f"ClassificationOutput: classes have dtype {classes.dtype.name}; string is required"
            )
        self._scores, self._classes = scores, classes

    @property
    def scores(self) -> Any:
        """The scores."""
        return self._scores

    @property
    def classes(self) -> Any:
        """The names of the classes."""
        return self._classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns a SignatureDef for classification, whose only input is of strings: examples."""
        outputs = {"scores": self._scores, "classes": self._classes}
        return signature_def_of_tensors(
            {"inputs": _only_examples(receiver_tensors, "ClassificationOutput")},
            {name: tensor for name, tensor in outputs.items() if tensor is not None},
            CLASSIFY_METHOD_NAME,
        )


class RegressionOutput(ExportOutput):
    """Numbers."""

    def __init__(self, value: Any) -> None:
        dtype = convert_to_tensor(value).dtype
        if not dtype.is_floating:
            raise InvalidArgumentError(f"RegressionOutput: value has dtype {dtype.name}; a floating dtype is required")
        self._value = value

    @property
    def value(self) -> Any:
        """The numbers."""
        return self._value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns a SignatureDef for regression, whose only input is of strings: examples."""
        inputs = {"inputs": _only_examples(receiver_tensors, "RegressionOutput")}
        return signature_def_of_tensors(inputs, {"outputs": self._value}, REGRESS_METHOD_NAME)


def checked_export_outputs(given: Any, predictions: Any, predicts: bool) -> dict[str, ExportOutput] | None:
    """Returns the export outputs of an EstimatorSpec, one of the key `serving_default`; by default its predictions."""
    if not predicts:
        return None
    if given is None:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(predictions)}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"EstimatorSpec: export_outputs is a {type(given).__name__}; a dict is required")
    for name, output in given.items():
        if not isinstance(output, ExportOutput):
            raise InvalidTypeError(
                f"EstimatorSpec: export output '{name}' is a {type(output).__name__}; a "
                "tf.estimator.export.ExportOutput is required"
            )
    found = dict(given)
    if DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found:
        if len(found) != 1:
            raise InvalidArgumentError(
                f"EstimatorSpec: of the {len(found)} export outputs none has the key "
                f"'{DEFAULT_SERVING_SIGNATURE_DEF_KEY}'; one must, to be the default"
            )
        found[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = next(iter(found.values()))
    return found


def signatures(
    receiver_tensors: Any, export_outputs: Mapping[str, ExportOutput], alternatives: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the SignatureDefs of a model by name. alternatives: further receiver tensors, by
    a name that ends the key.

    An output that does not suit the tensors is left out, as a classification of what is no examples; a warning says so.
    """
    found = {}
    for prefix, received in (("", receiver_tensors), *(alternatives or {}).items()):
        for name, output in export_outputs.items():
            key = f"{prefix}:{name}" if prefix else name
            tensors = _by_name(received, "input")
            try:
                found[key] = output.as_signature_def(tensors)
            except InvalidArgumentError as e:
                logging.warning("the exported model has no signature '%s': %s", key, e)
    return found


def _by_name(tensors: Any, alone: str) -> dict[str, Any]:
    named = tensors if isinstance(tensors, Mapping) else {alone: tensors}
    return {str(name): t.value() if isinstance(t, Variable) else convert_to_tensor(t) for name, t in named.items()}


def _only_examples(receiver_tensors: Mapping[str, Any], owner: str) -> Any:
    tensors = list(receiver_tensors.values())
    if len(tensors) != 1 or tensors[0].dtype is not string:
        raise InvalidArgumentError(
            f"{owner}: the inputs are {', '.join(sorted(receiver_tensors))}; one string tensor with examples is "
            "required, as build_parsing_serving_input_receiver_fn makes it"
        )
    return tensors[0]
