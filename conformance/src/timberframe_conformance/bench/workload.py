"""What one measurement of a kernel is."""

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
    device is meant to reach; the peer may also be ``copy``, a copy of as many bytes, or ``matmul``, the rate of the
    matrix product.
    """

    name: str
    inputs: Sequence[np.ndarray]
    build: Callable[..., Any]
    flops: float
    nbytes: float
    peers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    targets: Sequence[tuple[str, float]] = ()
