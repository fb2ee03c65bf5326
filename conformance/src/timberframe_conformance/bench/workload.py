"""What one measurement of a kernel is, and the inputs in each peer's own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """One op on given inputs. flops, nbytes: the work, for the roofline. peers: the same by other libraries, by name.

    build(tensors) makes the graph's result from placeholders of the inputs. targets: (peer, least ratio) that the
    device is meant to reach; the peer may also be ``copy``, a copy of as many bytes, or ``matmul``, that one's rate.
    """

    name: str
    inputs: Sequence[np.ndarray]
    build: Callable[..., Any]
    flops: float
    nbytes: float
    peers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    targets: Sequence[tuple[str, float]] = ()


def peer_inputs(peer: str, inputs: Sequence[np.ndarray], attributes: Any) -> list[Any]:
    """The inputs in a peer's own form; attributes: of the device that is measured.

    Raises ImportError where the peer is not installed, LookupError where it does not see the device.
    """
    if peer in ("pyopencl", "clblast"):
        from timberframe_conformance.bench.opencl import arrays

        return arrays(attributes.details.get("platform", ""), attributes.model, inputs)
    if peer == "torch":
        import torch  # type: ignore[import-not-found]  # a peer that need not be there

        torch.set_grad_enabled(False)
        return [torch.from_numpy(x) for x in inputs]
    if peer == "tensorflow":
        import tensorflow  # type: ignore[import-untyped]  # a peer that need not be there

        return [tensorflow.constant(x) for x in inputs]
    if peer == "jax":
        import jax.numpy  # type: ignore[import-not-found]  # a peer that need not be there

        return [jax.numpy.asarray(x) for x in inputs]
    return list(inputs)
