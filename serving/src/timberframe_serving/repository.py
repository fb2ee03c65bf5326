"""Places of models: folders of versions, which of them are wanted, and the configuration that says so."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timberframe_core.errors import InvalidArgumentError, MissingFileError
from timberframe_core.graphdef.messages import parse_text
from timberframe_serving import messages
from timberframe_serving.batching import BatchingSettings

SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
ONNX_FILE = "model.onnx"
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,256}")
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")
_COUNTED_FILES = 10_000


@dataclass(frozen=True)
class VersionPolicy:
    """The versions of a model that are wanted: the `latest` newest ones, these `specific` ones, or `every` one."""

    latest: int = 1
    specific: tuple[int, ...] = ()
    every: bool = False

    def wanted(self, present: Sequence[int]) -> list[int]:
        """Returns the wanted ones among those that are there, newest first."""
        ordered = sorted(present, reverse=True)
        if self.every:
            return ordered
        if self.specific:
            return [v for v in ordered if v in self.specific]
        return ordered[: self.latest]


@dataclass(frozen=True)
class Runtime:
    """What a model has instead of the server's own: "", 0 and None leave it at that.

    device: as for `tf.device`. Threads within one operation, and operations at once. memory_limit: bytes by the type of
    device. batching: how its requests are batched.
    """

    device: str = ""
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    memory_limit: Mapping[str, int] = field(default_factory=dict)
    batching: BatchingSettings | None = None

    @classmethod
    def of(cls, message: Any, what: str) -> Runtime:
        """Returns that of a ModelRuntime message; raises InvalidArgumentError for numbers below 0."""
        threads = {n: getattr(message, n) for n in ("intra_op_parallelism_threads", "inter_op_parallelism_threads")}
        limits = dict(message.memory_limit)
        for name, number in {**threads, **{f"memory_limit of {kind}": n for kind, n in limits.items()}}.items():
            if number < 0:
                raise InvalidArgumentError(f"{what}: {name} is {number}; at least 0 is required")
        given = message.HasField("batching_parameters")
        batching = BatchingSettings.of(message.batching_parameters, what) if given else None
        return cls(message.device, **threads, memory_limit=limits, batching=batching)


@dataclass(frozen=True)
class ModelSettings:
    """A model as the configuration has it. sampling_rate: the share of requests that are recorded into `record_to`."""

    name: str
    base_path: Path
    policy: VersionPolicy = VersionPolicy()
    labels: Mapping[str, int] = field(default_factory=dict)
    sampling_rate: float = 0.0
    record_to: str = ""
    runtime: Runtime = Runtime()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.strip(".") == "":
            raise InvalidArgumentError(
                f"model name is {self.name!r}; up to 256 letters, digits, '_', '-' and '.' are required"
            )


def version_number(text: str) -> int | None:
    """Returns the version that a folder's name or a part of a path says; None where it is none."""
    return int(text) if _VERSION.fullmatch(text) else None


def versions_in(base_path: Path) -> dict[int, Path]:
    """Returns the folders of versions in a model's folder; none where there is no such folder.

    A folder counts as soon as it holds a model's file, so that one that is being filled is not taken too early.
    """
    try:
        entries = list(os.scandir(base_path))
    except OSError:
        return {}
    found = {}
    for entry in entries:
        number = version_number(entry.name)
        if number is not None and has_model(Path(entry.path)):
            found[number] = Path(entry.path)
    return found


def has_model(folder: Path) -> bool:
    """Returns whether a folder holds the file of a model."""
    return any((folder / name).is_file() for name in (*SAVED_MODEL_FILES, ONNX_FILE))


def fingerprint(folder: Path) -> int:
    """Returns a number that changes when files in a folder do: their names, sizes and times."""
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_size, status.st_mtime_ns, status.st_ino))
        if len(found) > _COUNTED_FILES:
            break
    return hash(tuple(sorted(found)))


def models_in(folder: Path) -> dict[str, ModelSettings]:
    """Returns a model for each folder in a folder that has versions, as Triton's repositories have them."""
    if not folder.is_dir():
        raise MissingFileError(
            f"model repository '{folder}': there is no such folder; one with a folder per model is required"
        )
    found = {}
    for entry in sorted(folder.iterdir()):
        if _NAME.fullmatch(entry.name) and versions_in(entry):
            found[entry.name] = ModelSettings(entry.name, entry)
    return found


def read_file(path: Path, flag: str) -> bytes:
    """Returns what is in the file that a flag names; raises MissingFileError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise MissingFileError(f"{flag} '{path}': {error.strerror}; a readable file is required") from error


def read_configuration(path: Path) -> dict[str, ModelSettings]:
    """Returns the models that a file of TensorFlow Serving's `ModelServerConfig`, in text form, lists."""
    data = read_file(path, "model_config_file")
    parsed = parse_text(data, messages.serving("ModelServerConfig"), f"model_config_file '{path}'")
    return configured_models(parsed, path.parent)


def configured_models(config: Any, folder: Path = Path()) -> dict[str, ModelSettings]:
    """Returns the models of a `ModelServerConfig` message. folder: where relative paths begin."""
    if config.WhichOneof("config") == "custom_model_config":
        raise InvalidArgumentError("model config: is a custom_model_config; a model_config_list is required")
    found: dict[str, ModelSettings] = {}
    for model in config.model_config_list.config:
        if model.name in found:
            raise InvalidArgumentError(f"model config: '{model.name}' is there twice; each name may be given once")
        if not model.base_path:
            raise InvalidArgumentError(f"model config '{model.name}': base_path is empty; a folder is required")
        if model.model_platform not in ("", "tensorflow", "onnx"):
            raise InvalidArgumentError(
                f"model config '{model.name}': model_platform is '{model.model_platform}'; "
                "tensorflow or onnx is required"
            )
        found[model.name] = ModelSettings(
            model.name,
            folder / model.base_path,
            _policy(model),
            dict(model.version_labels),
            model.logging_config.sampling_config.sampling_rate,
            model.logging_config.log_collector_config.filename_prefix,
            Runtime.of(model.runtime, f"model config '{model.name}'"),
        )
    return found


def _policy(model: Any) -> VersionPolicy:
    chosen = model.model_version_policy
    match chosen.WhichOneof("policy_choice"):
        case "all":
            return VersionPolicy(every=True)
        case "specific":
            if not chosen.specific.versions:
                raise InvalidArgumentError(f"model config '{model.name}': specific has no versions; some are required")
            return VersionPolicy(specific=tuple(chosen.specific.versions))
        case "latest":
            return VersionPolicy(latest=max(1, chosen.latest.num_versions))
    return VersionPolicy()
