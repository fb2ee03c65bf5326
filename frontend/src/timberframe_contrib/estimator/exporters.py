"""Exporters: write the model in the course of `train_and_evaluate`."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from timberframe.train.checkpoint_state import latest_checkpoint
from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError, OpError


class Exporter(ABC):
    """Writes the model after an evaluation; a subclass says when and how."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name: models go to the folder ``export/<name>``."""

    @abstractmethod
    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Writes the model of a checkpoint into a folder, or does not; returns the path, or None.

        eval_result: the metrics of the checkpoint. is_the_final_export: whether the training has ended.
        """


class _SavedModelExporter(Exporter):
    """What the exporters here have in common. The arguments are those of `Estimator.export_saved_model`."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise InvalidArgumentError(
                f"{type(self).__name__}: exports_to_keep is {exports_to_keep}; it must be positive, or None for all"
            )
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._exports_to_keep = exports_to_keep

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _write(self, estimator: Any, export_path: str, checkpoint_path: str) -> Any:
        written = estimator.export_saved_model(
            export_path, self._serving_input_receiver_fn, self._assets_extra, self._as_text, checkpoint_path
        )
        if self._exports_to_keep:
            found = sorted((p for p in Path(export_path).iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
            for old in found[: -self._exports_to_keep]:
                shutil.rmtree(old, ignore_errors=True)
        return written


class FinalExporter(_SavedModelExporter):
    """Writes the model once, at the end of the training."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Writes the model where the training has ended."""
        return self._write(estimator, export_path, checkpoint_path) if is_the_final_export else None


class LatestExporter(_SavedModelExporter):
    """Writes the model after each evaluation, and keeps the latest exports_to_keep of them."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Writes the model."""
        return self._write(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    """Returns whether the current loss is smaller than the best so far."""
    for which, found in (("best", best_eval_result), ("current", current_eval_result)):
        if "loss" not in found:
            raise InvalidArgumentError(f"BestExporter: the {which} evaluation has no loss; give compare_fn")
    return bool(current_eval_result["loss"] < best_eval_result["loss"])


class BestExporter(_SavedModelExporter):
    """Writes the model whenever an evaluation is better than all before, and keeps the latest exports_to_keep of them.

    compare_fn(best_eval_result, current_eval_result): whether the current one is better; by default whose loss is
    smaller. event_file_pattern: where in the estimator's folder the summaries of evaluations are, which say how good
    the best one was before this process began; None to begin afresh.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str | None = None,
        compare_fn: Callable[[Any, Any], bool] = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._best: Any = None
        self._has_exported = False

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Writes the model where it is the best."""
        if self._best is None and self._event_file_pattern and not self._has_exported:
            self._best = self._best_of_events(os.path.join(estimator.model_dir, self._event_file_pattern), eval_result)
        if self._best is not None and not self._compare_fn(self._best, eval_result):
            return None
        self._best, self._has_exported = eval_result, True
        return self._write(estimator, export_path, checkpoint_path)

    def _best_of_events(self, pattern: str, current: Any) -> Any:
        """Returns the best evaluation in event files, but for the current one."""
        from glob import glob

        from timberframe.summary.writer import summary_iterator

        best = None
        for path in sorted(glob(pattern)):
            try:
                for event in summary_iterator(path):
                    found = {v.tag: v.simple_value for v in event.summary.value}
                    if not found or event.step == current.get("global_step"):
                        continue
                    if best is None or self._compare_fn(best, found):
                        best = found
            except OpError as e:  # a record that is being written
                logging.info("BestExporter: %s", e)
        return best


def export_all(exporters: Any, estimator: Any, metrics: Mapping[str, Any], is_the_final_export: bool) -> list[Any]:
    """Returns what exporters write of the latest checkpoint."""
    path = latest_checkpoint(estimator.model_dir)
    return [
        exporter.export(
            estimator=estimator,
            export_path=os.path.join(estimator.model_dir, "export", exporter.name),
            checkpoint_path=path,
            eval_result=metrics,
            is_the_final_export=is_the_final_export,
        )
        for exporter in exporters
    ]
