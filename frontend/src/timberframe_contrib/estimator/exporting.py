"""One call of `Estimator.export_saved_model`: a SavedModel in a folder with the time as its name."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from timberframe.saved_model.builder import Builder
from timberframe.saved_model.constants import SERVING
from timberframe.saving.files import file_errors
from timberframe.train.saver import Saver
from timberframe.train.scaffold import Scaffold
from timberframe_contrib.estimator.export import ServingInputReceiver
from timberframe_contrib.estimator.export_outputs import signatures
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.runtime.session import Session


def receive(serving_input_receiver_fn: Callable[[], Any]) -> ServingInputReceiver:
    """Returns what the function returns; an error where that is no ServingInputReceiver."""
    if not callable(serving_input_receiver_fn):
        raise InvalidTypeError(
            f"export_saved_model: serving_input_receiver_fn is {serving_input_receiver_fn!r}; a function is required"
        )
    receiver = serving_input_receiver_fn()
    if not isinstance(receiver, ServingInputReceiver):
        raise InvalidTypeError(
            f"export_saved_model: serving_input_receiver_fn returned a {type(receiver).__name__}; a "
            "tf.estimator.export.ServingInputReceiver is required"
        )
    return receiver


def export(
    spec: EstimatorSpec,
    receiver: ServingInputReceiver,
    base: str,
    checkpoint: str,
    assets_extra: Mapping[str, str] | None,
    as_text: bool,
    session_config: Any,
) -> bytes:
    """Writes the model of a spec, in the default graph, with the values of a checkpoint. Returns the folder."""
    outputs = spec.export_outputs
    if not outputs:
        raise InvalidTypeError("export_saved_model: the EstimatorSpec has no export_outputs; mode PREDICT gives them")
    definitions = signatures(receiver.receiver_tensors, outputs, receiver.receiver_tensors_alternatives)
    init = spec.scaffold.local_init_op or Scaffold.default_local_init_op()
    saver = spec.scaffold.saver or Saver(allow_empty=True)
    folder = _new_folder(base)
    unfinished = Path(base) / f"temp-{folder.name}"
    with file_errors(f"saved model '{folder}' cannot be written"):
        try:
            with Session(graph=get_default_graph(), config=session_config) as session:
                saver.restore(session, checkpoint)
                session.run(init)
                builder = Builder(str(unfinished))
                builder.add_meta_graph_and_variables(session, [SERVING], definitions, main_op=init, saver=saver)
                builder.save(as_text)
            for name, source in (assets_extra or {}).items():
                target = unfinished / "assets.extra" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
            os.rename(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return os.fsencode(folder)


def _new_folder(base: str) -> Path:
    """Returns a folder in `base` that does not exist, with a number of seconds as its name."""
    stamp = int(time.time())
    while (folder := Path(base) / str(stamp)).exists():
        stamp += 1
    return folder
