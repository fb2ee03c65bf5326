"""`tf.data.Options`: how datasets are run. They change no element, and most of them ask for what is so anyway."""

from __future__ import annotations

from typing import Any

from timberframe_core.errors import InvalidArgumentError


class _Settings:
    """Settings by name, None where they are not set."""

    names: tuple[str, ...] = ()

    def __init__(self) -> None:
        object.__setattr__(self, "_set", {})

    def __getattr__(self, name: str) -> Any:
        if name not in type(self).names:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(type(self).names)}")
        return self._set.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).names:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(type(self).names)}")
        self._set[name] = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._set == self._set

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._set)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in sorted(self._set.items()))})"


class OptimizationOptions(_Settings):
    """What rewriting datasets is asked for; elements are the same without."""

    names = (
        "apply_default_optimizations", "autotune", "autotune_algorithm", "autotune_buffers", "autotune_cpu_budget",
        "filter_fusion", "filter_with_random_uniform_fusion", "hoist_random_uniform", "map_and_batch_fusion",
        "map_and_filter_fusion", "map_fusion", "map_parallelization", "map_vectorization", "noop_elimination",
        "parallel_batch", "shuffle_and_repeat_fusion",
    )  # fmt: skip


class ThreadingOptions(_Settings):
    """How many threads a dataset may use."""

    names = ("max_intra_op_parallelism", "private_threadpool_size")


class StatsOptions(_Settings):
    """What is counted while a dataset runs."""

    names = ("aggregator", "counter_prefix", "latency_all_edges", "prefix")


class DistributeOptions(_Settings):
    """How the elements are shared among several programs."""

    names = ("auto_shard", "auto_shard_policy", "num_devices")


class Options(_Settings):
    """How a dataset is run: `dataset.with_options(options)`."""

    names = (
        "autotune", "deterministic", "experimental_autotune", "experimental_deterministic", "experimental_distribute",
        "experimental_external_state_policy", "experimental_numa_aware", "experimental_optimization",
        "experimental_slack", "experimental_stats", "experimental_threading", "threading",
    )  # fmt: skip

    _parts = {
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_stats": StatsOptions,
        "experimental_threading": ThreadingOptions,
        "threading": ThreadingOptions,
    }

    def __getattr__(self, name: str) -> Any:
        if name in Options._parts and name not in self._set:
            self._set[name] = Options._parts[name]()
        return super().__getattr__(name)

    def merge(self, options: Options) -> Options:
        """Returns these options and others; InvalidArgumentError where one is set to two values."""
        merged = Options()
        merged._set.update(self._set)
        for name, value in options._set.items():
            if isinstance(value, _Settings):
                part = type(value)()
                part._set.update(getattr(merged, name)._set | value._set)
                merged._set[name] = part
            elif merged._set.get(name) in (None, value):
                merged._set[name] = value
            else:
                raise InvalidArgumentError(
                    f"option {name} is set to {merged._set[name]!r} and to {value!r}; "
                    "datasets that are joined need equal ones"
                )
        return merged
