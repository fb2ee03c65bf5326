"""Settings of sessions and runs: SessionConfig, RunOptions, RunMetadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from timberframe_core.arguments import listed
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.device_spec import DeviceSpec, canonical_device
from timberframe_core.graphdef import messages

ACCELERATORS = "ACCELERATORS"
"""In place of a device type: every type whose memory is not the host's."""


def _frozen(mapping: Any, what: str, kinds: tuple[type, ...], upper: bool = True) -> Mapping[str, Any]:
    """Returns a read-only copy; raises InvalidArgumentError unless it maps strings to values of these types."""
    if not isinstance(mapping, Mapping):
        raise InvalidArgumentError(f"SessionConfig.{what} is {mapping!r}; a mapping is required")
    for key, value in mapping.items():
        wrong_bool = isinstance(value, bool) and bool not in kinds
        if not isinstance(key, str) or not isinstance(value, kinds) or wrong_bool:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise InvalidArgumentError(
                f"SessionConfig.{what} has {key!r}: {value!r}; strings with {wanted} are required"
            )
    return MappingProxyType({key.upper() if upper else key: value for key, value in mapping.items()})


def _check_integer(value: Any, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgumentError(f"{what} is {value!r}; an integer of at least 0 is required")


@dataclass(frozen=True)
class SessionConfig:
    """How a Session uses devices and compiles graphs. Wherever one is taken, a ConfigProto is too.

    device_count: how many devices of a type to make, ``{"ACME": 4}``; types not named give what their plugin has.
    intra_op_parallelism_threads, inter_op_parallelism_threads: threads within one kernel and between clusters; 0 lets
        the devices choose.
    allow_soft_placement: a node whose device cannot run it moves to one that can; otherwise that is an error.
    strict_placement: even a node that names no device must run on the best device; anything else is an error.
    log_device_placement: writes the device of every node, and why, to standard error or the program's log.
    memory_limit: by device type, bytes (int) or a fraction of the device's memory (float in (0, 1]).
    deterministic: equal inputs give equal bits in every run, at any number of threads; random ops need a seed.
    optimizations: switches of passes by name; those that are not named are on. `session.explain` lists the passes.
    device_options: by device type, options that its plugin defines, ``{"ACME": {"mode": "safe"}}``.
    plugins: names of the plugins to use; a leading ``-`` leaves one out. None takes all.
    operation_timeout_in_ms: limit for each run that names none itself; 0 is no limit.
    device_filters: of a session on a cluster, the devices that it uses, such as ``["/job:ps", "/job:worker/task:0"]``:
        those that one of them names, and those of its own process; it needs no other task. Empty takes all.
    memory_checks: ``zones`` puts guard zones around what kernels write and fills memory with poison first; ``start``
        and ``end`` also put this end of each tensor of the host at a page that nobody may read. Runs are slow.
    shadow_device: a device, such as ``cpu``, on which each node of other devices is run again; the first whose results
        differ by more than its op allows is an InternalError, with a script that shows it. Runs are slow.
    compile: of devices that compile whole clusters: ``cached`` keeps programs on disk and takes those that are there,
        ``cached_only`` refuses to compile what is not there. By default the process alone keeps them.
    order_seed: nodes run in an order drawn from this seed, one that their edges allow, in place of the planned one.
    """

    device_count: Mapping[str, int] = field(default_factory=dict)
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    allow_soft_placement: bool = False
    strict_placement: bool = False
    log_device_placement: bool = False
    memory_limit: Mapping[str, int | float] = field(default_factory=dict)
    deterministic: bool = False
    optimizations: Mapping[str, bool] = field(default_factory=dict)
    device_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plugins: Sequence[str] | None = None
    operation_timeout_in_ms: int = 0
    memory_checks: str = ""
    shadow_device: str = ""
    order_seed: int | None = None
    compile: str = ""
    device_filters: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.memory_checks not in ("", "zones", "start", "end"):
            raise InvalidArgumentError(
                f"SessionConfig.memory_checks is {self.memory_checks!r}; zones, start, end or nothing is required"
            )
        if self.compile not in ("", "cached", "cached_only"):
            raise InvalidArgumentError(
                f"SessionConfig.compile is {self.compile!r}; cached, cached_only or nothing is required"
            )
        if not isinstance(self.shadow_device, str):
            raise InvalidArgumentError(f"SessionConfig.shadow_device is {self.shadow_device!r}; a name is required")
        if self.order_seed is not None:
            _check_integer(self.order_seed, "SessionConfig.order_seed")
        for name in ("allow_soft_placement", "strict_placement", "log_device_placement", "deterministic"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgumentError(
                    f"SessionConfig.{name} is {getattr(self, name)!r}; True or False is required"
                )
        for name in ("intra_op_parallelism_threads", "inter_op_parallelism_threads", "operation_timeout_in_ms"):
            _check_integer(getattr(self, name), f"SessionConfig.{name}")
        if self.strict_placement and self.allow_soft_placement:
            raise InvalidArgumentError(
                "SessionConfig has strict_placement and allow_soft_placement set; they contradict each other"
            )
        self._check_mappings()
        filters = listed(self.device_filters, "SessionConfig.device_filters", "devices")
        object.__setattr__(self, "device_filters", tuple(canonical_device(f) for f in filters))
        if self.plugins is not None:
            names = listed(self.plugins, "SessionConfig.plugins", "names")
            if not all(isinstance(p, str) for p in names):
                raise InvalidTypeError(f"SessionConfig.plugins is {self.plugins!r}; a list of names is required")
            object.__setattr__(self, "plugins", tuple(names))

    def _check_mappings(self) -> None:
        kinds: dict[str, tuple[type, ...]] = {
            "device_count": (int,),
            "memory_limit": (int, float),
            "optimizations": (bool,),
            "device_options": (Mapping,),
        }
        for name, allowed in kinds.items():
            frozen = _frozen(getattr(self, name), name, allowed, upper=name != "optimizations")
            object.__setattr__(self, name, frozen)
        for device, count in self.device_count.items():
            _check_integer(count, f"SessionConfig.device_count[{device!r}]")
        for device, limit in self.memory_limit.items():
            if limit <= 0 or (isinstance(limit, float) and limit > 1):
                raise InvalidArgumentError(
                    f"SessionConfig.memory_limit[{device!r}] is {limit!r}; bytes or a fraction in (0, 1] are required"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets copies be made and pickled, which its read-only mappings cannot be."""
        return _session_config, ({f.name: _plain(getattr(self, f.name)) for f in fields(self)},)

    @classmethod
    def of(cls, config: Any) -> SessionConfig:
        """Returns the settings that `config` means: a SessionConfig, a ConfigProto (ours or TensorFlow's), or None."""
        if config is None:
            return cls()
        return config if isinstance(config, SessionConfig) else cls.from_proto(config)

    @classmethod
    def from_proto(cls, proto: Any) -> SessionConfig:
        """Returns the settings of a ConfigProto. What it says about GPUs holds for all accelerators.

        Raises InvalidArgumentError if it is no ConfigProto or a value is out of range.
        """
        message = messages.as_message(proto, messages.ConfigProto, "config")
        return cls(
            device_count=dict(message.device_count),
            intra_op_parallelism_threads=max(message.intra_op_parallelism_threads, 0),
            inter_op_parallelism_threads=max(message.inter_op_parallelism_threads, 0),
            allow_soft_placement=message.allow_soft_placement,
            log_device_placement=message.log_device_placement,
            memory_limit=_accelerator_memory(message),
            optimizations=_optimizations(message.graph_options),
            operation_timeout_in_ms=message.operation_timeout_in_ms,
            device_filters=list(message.device_filters),
        )

    def allows(self, device: str) -> bool:
        """Returns whether device_filters let the session use a device of a cluster, or any of a
        task; device: its full name.
        """
        found, specs = DeviceSpec.from_string(device), [DeviceSpec.from_string(f) for f in self.device_filters]
        if found.device_type is None:
            specs = [spec.of_same_task() for spec in specs]
        return not specs or any(spec.matches(found) for spec in specs)


def _session_config(settings: Mapping[str, Any]) -> SessionConfig:
    return SessionConfig(**settings)


def _plain(value: Any) -> Any:
    """Returns the value with dicts in place of mappings of any kind."""
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _accelerator_memory(message: Any) -> dict[str, int | float]:
    """Returns the limit for accelerators. `allow_growth` has no effect: devices take memory as it is needed."""
    limit: dict[str, int | float] = {}
    for options in (message.gpu_options, message.pluggable_device_options):
        if options.per_process_gpu_memory_fraction:
            limit[ACCELERATORS] = options.per_process_gpu_memory_fraction
        for virtual in options.experimental.virtual_devices:
            if virtual.memory_limit_mb:
                limit[ACCELERATORS] = int(virtual.memory_limit_mb[0] * 2**20)
    return limit


def _optimizations(graph_options: Any) -> dict[str, bool]:
    off = messages.RewriterConfig.Toggle.Value("OFF")
    rewrite = graph_options.rewrite_options
    all_off = graph_options.optimizer_options.opt_level == messages.OptimizerOptions.Level.Value("L0")
    switches = {
        "fold": rewrite.constant_folding,
        "cse": rewrite.common_subgraph_elimination,
        "simplify": rewrite.arithmetic_optimization,
        "powers": rewrite.arithmetic_optimization,
        "pads": rewrite.remapping,
        "norms": rewrite.remapping,
        "fuse": rewrite.remapping,
        "cover": rewrite.remapping,
        "dense_lists": rewrite.loop_optimization,
        "hoist": rewrite.loop_optimization,
        "sink": rewrite.loop_optimization,
        "narrow": rewrite.loop_optimization,
    }
    return {
        name: False for name, value in switches.items() if all_off or rewrite.disable_meta_optimizer or value == off
    }


@dataclass(unsafe_hash=True)
class RunOptions:
    """How one run is done; its fields may be set afterwards, as those of TensorFlow's message.

    trace_level: anything above NO_TRACE records a timeline, as `trace=True` does. timeout_in_ms: DeadlineExceededError
    after this time; 0 is no limit. fetch_on_device: results that lie in another memory than the host's stay there, as
    DeviceArrays. The other names are TensorFlow's and are accepted for its programs' sake:
    output_partition_graphs puts the clusters' GraphDefs into RunMetadata, inter_op_thread_pool and
    report_tensor_allocations_upon_oom change nothing (such errors always report them).
    """

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3

    trace_level: int = NO_TRACE
    timeout_in_ms: int = 0
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False
    trace: bool = False
    fetch_on_device: bool = False

    def __post_init__(self) -> None:
        self.trace_level = self.trace_level  # which decides about `trace`

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            raise AttributeError(f"RunOptions has no field {name!r}; it has {', '.join(self.__dataclass_fields__)}")
        if name == "trace_level" and (value not in range(4) or isinstance(value, bool)):
            raise InvalidArgumentError(f"RunOptions.trace_level is {value!r}; it must be 0 to 3")
        if name == "timeout_in_ms":
            _check_integer(value, "RunOptions.timeout_in_ms")
        object.__setattr__(self, name, value)
        if name == "trace_level" and value:
            object.__setattr__(self, "trace", True)

    @classmethod
    def of(cls, options: Any) -> RunOptions:
        """Returns the options that `options` means: a RunOptions, TensorFlow's message of that name, or None."""
        if options is None:
            return cls()
        if isinstance(options, RunOptions):
            return options
        message = messages.as_message(options, messages.RunOptionsMessage, "options")
        return cls(message.trace_level, message.timeout_in_ms, output_partition_graphs=message.output_partition_graphs)


class RunMetadata:
    """What a run records for RunOptions that request it.

    trace: a timeline in the Trace Event format that Chrome and Perfetto read, of a run with `RunOptions(trace=True)`.
    partition_graphs: a GraphDef for each cluster, of a run with `RunOptions(output_partition_graphs=True)`.
    """

    def __init__(self) -> None:
        self.trace: dict[str, Any] | None = None
        self.partition_graphs: list[Any] = []

    @property
    def step_stats(self) -> dict[str, Any]:
        """The trace, which `tf.python.client.timeline.Timeline` takes; empty where the run was not traced."""
        return self.trace or {}

    def SerializeToString(self) -> bytes:  # noqa: N802 - the message's name
        """Returns the trace and the partition graphs as the bytes of TensorFlow's RunMetadata message."""
        from timberframe_core.graphdef.run_metadata import run_metadata_message

        message = run_metadata_message(self.trace, self.partition_graphs)
        serialized: bytes = message.SerializeToString()
        return serialized

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Writes the timeline to a file: a page where its name ends in ``.html``, else what Perfetto reads.

        Raises InvalidArgumentError if the run was not traced.
        """
        if self.trace is None:
            raise InvalidArgumentError("RunMetadata has no trace; run with RunOptions(trace=True)")
        with open(path, "w", encoding="utf-8") as file:
            if fspath(path).endswith(".html"):
                from timberframe_core.drawing.trace import trace_page

                file.write(trace_page(self.trace))
            else:
                json.dump(self.trace, file)
