"""The flags of the command line: TensorFlow Serving's, and ours."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from timberframe_core.config import SessionConfig
from timberframe_core.errors import InvalidArgumentError, MissingFileError
from timberframe_core.graphdef.messages import parse_text
from timberframe_serving import messages
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.manager import ManagerSettings
from timberframe_serving.models import LoadSettings
from timberframe_serving.repository import ModelSettings, models_in, read_configuration, read_file
from timberframe_serving.server import Hosting
from timberframe_serving.service import Keys, Limits
from timberframe_serving.tracing import Tracing


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"is {text!r}; true or false is required")
    return text.lower() in ("true", "1")


def _replicas(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not all(n.isascii() and n.isdecimal() for n in (least, most or least)) or not 1 <= int(least) <= int(
        most or least
    ):
        raise argparse.ArgumentTypeError(f"is {text!r}; a number of replicas, or MIN:MAX, is required")
    return int(least), int(most or least)


def _add_models(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("models")
    group.add_argument("--model_name", default="default", help="the name of the only model (%(default)s)")
    group.add_argument("--model_base_path", type=Path, help="its folder, with a folder for each version")
    group.add_argument("--model_config_file", type=Path, help="a ModelServerConfig in text form, for several models")
    group.add_argument("--model_repository", type=Path, help="a folder with a folder for each model")
    group.add_argument(
        "--model_config_file_poll_wait_seconds", type=float, default=0, help="reads the file again so often; 0: never"
    )
    group.add_argument(
        "--file_system_poll_wait_seconds", type=float, default=1, help="looks for versions so often (%(default)s)"
    )
    group.add_argument("--device", default="", help="where models run, such as /device:CPU:0; else placement says")
    group.add_argument("--allow_soft_placement", type=_switch, nargs="?", const=True, default=False,
                       help="operations that have no kernel there run on another device")  # fmt: skip
    group.add_argument("--saved_model_tags", default="serve", help="tags of the graph to load (%(default)s)")
    group.add_argument("--allow_model_control", type=_switch, nargs="?", const=True, default=False,
                       help="requests may load, unload and configure models")  # fmt: skip
    group.add_argument("--availability_preserving_policy", type=_switch, nargs="?", const=True, default=True,
                       help="loads a new version before the old one goes (%(default)s)")  # fmt: skip
    group.add_argument("--max_num_load_retries", type=int, default=5, help="of a version that fails (%(default)s)")
    group.add_argument("--load_retries_interval_micros", type=int, default=60_000_000, help="(%(default)s)")
    group.add_argument("--num_load_threads", type=int, default=2, help="(%(default)s)")
    group.add_argument("--tensorflow_intra_op_parallelism", type=int, default=0, help="threads of one operation")
    group.add_argument("--tensorflow_inter_op_parallelism", type=int, default=0, help="operations at once")
    group.add_argument("--tensorflow_session_parallelism", type=int, default=0, help="both of these")
    group.add_argument("--memory_limit", action="append", default=[], metavar="TYPE=BYTES",
                       help="of a type of device, per version, such as CUDA=4000000000")  # fmt: skip


def _add_batching(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("batching")
    group.add_argument("--enable_batching", type=_switch, nargs="?", const=True, default=True,
                       help="computes requests together that come while the model is busy (%(default)s)")  # fmt: skip
    group.add_argument("--batching_parameters_file", type=Path, help="TensorFlow Serving's parameters in text form")


def _add_hosting(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connections")
    group.add_argument("--port", type=int, default=8500, help="of gRPC; 0: none (%(default)s)")
    group.add_argument("--rest_api_port", type=int, default=0, help="of HTTP; 0: none (%(default)s)")
    group.add_argument("--host", default="0.0.0.0", help="the address to listen on (%(default)s)")
    group.add_argument("--rest_api_timeout_in_ms", type=int, default=30_000, help="(%(default)s)")
    group.add_argument("--max_request_bytes", type=int, default=64 << 20, help="of a body or message (%(default)s)")
    group.add_argument("--api_keys_file", type=Path, help="a key on each line; without one of them nothing is answered")
    group.add_argument("--tls_certificate_file", type=Path, help="in PEM")
    group.add_argument("--tls_key_file", type=Path, help="in PEM")
    group.add_argument("--tls_client_authority_file", type=Path, help="in PEM; clients must have certificates of it")
    group.add_argument("--access_log", action="store_true", help="logs every request of HTTP, not only refused ones")
    group.add_argument("--log_level", default="info", choices=["debug", "info", "warning", "error"])
    group.add_argument("--ray", type=_replicas, metavar="REPLICAS",
                       help="serves HTTP on a cluster of Ray, such as 2, or 1:4 by the load")  # fmt: skip
    group.add_argument("--otlp_traces_endpoint", help="sends spans of OpenTelemetry, as to http://HOST:4318/v1/traces")
    group.add_argument("--shutdown_seconds", type=float, default=30, help="for requests in progress (%(default)s)")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the values of all flags."""
    parser = argparse.ArgumentParser("python -m timberframe_serving", description="Serves models.")
    _add_models(parser)
    _add_batching(parser)
    _add_hosting(parser)
    found = parser.parse_args(arguments)
    ways = [found.model_base_path, found.model_config_file, found.model_repository]
    if sum(w is not None for w in ways) != 1:
        parser.error("one of --model_base_path, --model_config_file and --model_repository is required")
    if (found.tls_certificate_file is None) != (found.tls_key_file is None):
        parser.error("--tls_certificate_file and --tls_key_file are required together")
    if found.ray and not found.rest_api_port:
        parser.error("--rest_api_port is required for --ray, which serves HTTP alone")
    if found.ray and (found.tls_client_authority_file or found.model_config_file_poll_wait_seconds):
        parser.error("--tls_client_authority_file and --model_config_file_poll_wait_seconds are not for --ray")
    if not found.port and not found.rest_api_port:
        parser.error("--port or --rest_api_port is required")
    return found


def models(flags: argparse.Namespace) -> Mapping[str, ModelSettings]:
    """Returns the models to serve."""
    if flags.model_config_file is not None:
        return read_configuration(flags.model_config_file)
    if flags.model_repository is not None:
        return models_in(flags.model_repository)
    if not flags.model_base_path.is_dir():
        raise MissingFileError(f"model_base_path '{flags.model_base_path}': there is no such folder; one is required")
    return {flags.model_name: ModelSettings(flags.model_name, flags.model_base_path)}


def load_settings(flags: argparse.Namespace) -> LoadSettings:
    """Returns how models are loaded."""
    limits = {}
    for text in flags.memory_limit:
        kind, _, size = text.partition("=")
        if not kind or not size.isdigit():
            raise InvalidArgumentError(f"memory_limit is '{text}'; a type of device, '=' and bytes are required")
        limits[kind] = int(size)
    both = flags.tensorflow_session_parallelism
    config = SessionConfig(
        allow_soft_placement=flags.allow_soft_placement,
        intra_op_parallelism_threads=flags.tensorflow_intra_op_parallelism or both,
        inter_op_parallelism_threads=flags.tensorflow_inter_op_parallelism or both,
        memory_limit=limits,
    )
    return LoadSettings(flags.device, tuple(filter(None, flags.saved_model_tags.split(","))), config)


def batching_settings(flags: argparse.Namespace) -> BatchingSettings:
    """Returns how requests are batched."""
    if flags.batching_parameters_file is None:
        return BatchingSettings(enabled=flags.enable_batching)
    file = flags.batching_parameters_file
    data = read_file(file, "batching_parameters_file")
    what = f"batching_parameters_file '{file}'"
    return BatchingSettings.of(
        parse_text(data, messages.serving("BatchingParameters"), what), what, flags.enable_batching
    )


def manager_settings(flags: argparse.Namespace) -> ManagerSettings:
    """Returns how versions change."""
    return ManagerSettings(
        load_first=flags.availability_preserving_policy,
        load_attempts=1 + max(0, flags.max_num_load_retries),
        load_interval=flags.load_retries_interval_micros / 1e6,
        poll_interval=max(0.05, flags.file_system_poll_wait_seconds),
        load_threads=max(1, flags.num_load_threads),
        drain_seconds=flags.shutdown_seconds,
    )


def limits(flags: argparse.Namespace) -> Limits:
    """Returns what requests may be."""
    seconds = flags.rest_api_timeout_in_ms / 1e3
    return Limits(flags.max_request_bytes, seconds, seconds)


def keys(flags: argparse.Namespace) -> Keys:
    """Returns who may ask."""
    return Keys() if flags.api_keys_file is None else Keys.read(flags.api_keys_file)


def tracing(flags: argparse.Namespace) -> Tracing | None:
    """Returns what makes spans, where they are asked for."""
    return Tracing.to(flags.otlp_traces_endpoint) if flags.otlp_traces_endpoint else None


def hosting(flags: argparse.Namespace) -> Hosting:
    """Returns where to listen."""
    return Hosting(
        flags.host,
        flags.rest_api_port or None,
        flags.port or None,
        flags.tls_certificate_file,
        flags.tls_key_file,
        flags.tls_client_authority_file,
        flags.access_log,
        flags.model_config_file,
        flags.model_config_file_poll_wait_seconds,
        flags.shutdown_seconds,
    )
