"""The file `checkpoint` in a folder of checkpoints: which there are, and which is the latest."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from timberframe.saving.bundle_writer import remove_bundle
from timberframe.saving.files import replace_file
from timberframe.saving.formats import exists
from timberframe.saving.positions import remove_positions
from timberframe.saving.tensorflow_bundle import INDEX
from timberframe_core import logging
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages


def _state_file(folder: str, latest_filename: str | None) -> Path:
    return Path(folder) / (latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """Returns the CheckpointState of these paths, which become relative to save_dir where they were relative.

    The latest path is put last among all where it is not. Timestamps: seconds since 1970, one for each path.
    """
    paths = list(all_model_checkpoint_paths or ())
    stamps = list(all_model_checkpoint_timestamps or ())
    if stamps and len(stamps) != len(paths):
        raise InvalidArgumentError(
            f"checkpoint state: has {len(stamps)} timestamps for {len(paths)} paths; each path needs one"
        )
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
        if stamps:
            stamps.append(time.time())

    def relative(path: str) -> str:
        if os.path.isabs(save_dir) or os.path.isabs(path):
            return path
        return os.path.relpath(path, save_dir)

    state = messages.CheckpointState(model_checkpoint_path=relative(model_checkpoint_path))
    state.all_model_checkpoint_paths.extend(relative(p) for p in paths)
    state.all_model_checkpoint_timestamps.extend(stamps)
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Writes the file `checkpoint` (or latest_filename) of save_dir, in one step."""
    state = generate_checkpoint_state_proto(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )
    write_state(save_dir, state, latest_filename)


def write_state(save_dir: str, state: Any, latest_filename: str | None = None) -> None:
    """Writes a CheckpointState as the state file of a folder."""
    path = _state_file(save_dir, latest_filename)
    replace_file(path, messages.format_text(state).encode())


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> Any:
    """Returns the CheckpointState of a folder with paths that can be opened; None where it
    has none that can be read.
    """
    path = _state_file(os.fspath(checkpoint_dir), latest_filename)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as e:
        logging.warning("%s: cannot be read (%s); it is ignored", path, e)
        return None
    try:
        state = messages.parse_text(text, messages.CheckpointState, f"file '{path}'")
    except InvalidArgumentError as e:
        logging.warning("%s: is no checkpoint state (%s); it is ignored", path, e)
        return None
    if not state.model_checkpoint_path:
        logging.warning("%s: names no checkpoint; it is ignored", path)
        return None
    state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    joined = [os.path.join(checkpoint_dir, p) for p in state.all_model_checkpoint_paths]
    del state.all_model_checkpoint_paths[:]
    state.all_model_checkpoint_paths.extend(joined)
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Returns the path of the latest checkpoint that the folder's state file names and that
    exists; None without one.
    """
    instance(checkpoint_dir, (str, os.PathLike), "latest_checkpoint: checkpoint_dir", "a path")
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path: str = state.model_checkpoint_path
    if exists(path):
        return path
    logging.error("%s names checkpoint %s, which does not exist", _state_file(checkpoint_dir, latest_filename), path)
    return None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Returns whether there is a checkpoint of this path."""
    return exists(os.fspath(checkpoint_prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """Returns when the checkpoints that exist were completed, in seconds since 1970."""
    found = []
    for prefix in checkpoint_prefixes:
        with contextlib.suppress(FileNotFoundError):
            found.append(os.stat(f"{prefix}{INDEX}").st_mtime)
    return found


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yields the path of each checkpoint that becomes the latest of a folder, from the present one on.

    min_interval_secs: the least number of seconds between two. timeout: seconds to wait for a new one, for ever if
    None; after them the iteration ends, or goes on where timeout_fn is given and returns False.
    """
    path: str | None = None
    while True:
        newer = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if newer is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        began, path = time.monotonic(), newer
        yield newer
        time.sleep(max(0.0, began + min_interval_secs - time.monotonic()))


def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """Returns the latest checkpoint of a folder once it is another than last_checkpoint;
    None after `timeout` seconds.
    """
    end = None if timeout is None else time.monotonic() + timeout
    while (found := latest_checkpoint(checkpoint_dir)) is None or found == last_checkpoint:
        if end is not None and time.monotonic() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)
    return found


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Removes the files of a checkpoint."""
    remove_bundle(checkpoint_prefix)
    remove_positions(checkpoint_prefix)
    Path(f"{checkpoint_prefix}.{meta_graph_suffix}").unlink(missing_ok=True)
