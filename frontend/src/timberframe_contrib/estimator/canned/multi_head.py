"""A head made of several, for models that learn several things at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe import metrics
from timberframe.api.arithmetic import add_n
from timberframe.api.arrays import split
from timberframe_contrib.estimator.canned.heads import DEFAULT, Head, Pair
from timberframe_contrib.estimator.export_outputs import ExportOutput
from timberframe_contrib.estimator.spec import ModeKeys
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.operation import Tensor


class MultiHead(Head):
    """Heads side by side: the loss is the sum of theirs, each times its weight in head_weights.

    heads: each with a name of its own. Logits are a dict by these names, or one tensor with those of all heads in
    order; labels a dict. The predictions have pairs (name of the head, name of the prediction) as their names; models
    that are exported give the first head's by default.
    """

    def __init__(self, heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> None:
        self._heads = list(heads)
        names = [head.name for head in self._heads]
        if not names or None in names or len(set(names)) < len(names):
            raise InvalidArgumentError(f"MultiHead: the heads have the names {names}; different ones are required")
        if head_weights is not None and len(head_weights) != len(names):
            raise InvalidArgumentError(
                f"MultiHead: {len(head_weights)} head_weights for {len(names)} heads; one for each is required"
            )
        self._head_weights = list(head_weights or [1.0] * len(names))
        size = sum(head.size for head in self._heads)
        super().__init__(size, "_".join(map(str, names)))

    def _parts(self, logits: Any) -> list[Any]:
        """Returns the logits of each head."""
        if isinstance(logits, Mapping):
            return [self._of(logits, head, "logits") for head in self._heads]
        parts: Any = split(logits, [head.size for head in self._heads], -1)
        return list(parts)

    def _of(self, given: Any, head: Head, what: str) -> Any:
        if not isinstance(given, Mapping) or head.name not in given:
            raise InvalidTypeError(
                f"MultiHead: {what} are {given!r}; a dict with what belongs to head '{head.name}' is required"
            )
        return given[head.name]

    def predictions(self, logits: Any) -> dict[Any, Tensor]:
        """Returns those of all heads, by the names of heads and predictions."""
        parts = zip(self._heads, self._parts(logits), strict=True)
        return {(head.name, key): value for head, part in parts for key, value in head.predictions(part).items()}

    def _predictions_of(self, head: Head, predictions: Mapping[Any, Any]) -> dict[str, Any]:
        return {key: value for (name, key), value in predictions.items() if name == head.name}

    def judged(
        self, features: Any, labels: Any, logits: Any, predictions: Mapping[Any, Any], mode: str
    ) -> tuple[Any, dict[str, Pair]]:
        """Returns the sum of the losses, and the metrics of all heads."""
        parts, found = [], {}
        for head, part, weight in zip(self._heads, self._parts(logits), self._head_weights, strict=True):
            own = self._predictions_of(head, predictions)
            loss, of_head = head.judged(features, self._of(labels, head, "labels"), part, own, mode)
            parts.append(loss * weight)
            if mode != ModeKeys.TRAIN:
                found.update({**of_head, f"loss/{head.name}": metrics.mean(loss)})
        return add_n(parts), found

    def exported(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """Returns what each head gives, by the names of heads and outputs; the first head's by default."""
        found: dict[str, ExportOutput] = {}
        for head in self._heads:
            for key, output in head.exported(self._predictions_of(head, predictions)).items():
                found[str(head.name) if key == DEFAULT else f"{head.name}/{key}"] = output
        return {DEFAULT: found[str(self._heads[0].name)], **found}
