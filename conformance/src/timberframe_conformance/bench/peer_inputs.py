"""The inputs of a measurement in each peer's own form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_conformance.bench.opencl import arrays


def peer_inputs(peer: str, inputs: Sequence[np.ndarray], attributes: Any) -> list[Any]:
    """Returns the inputs in a peer's own form; attributes: of the device that is measured.

    Raises ImportError where the peer is not installed, LookupError where it does not see the device.
    """
    if peer in ("pyopencl", "clblast"):
        return arrays(attributes.details.get("platform", ""), attributes.model, inputs)
    if peer == "torch":
        import torch  # a peer that need not be there

        torch.set_grad_enabled(False)
        return [torch.from_numpy(x) for x in inputs]
    if peer == "tensorflow":
        import tensorflow  # type: ignore[import-untyped]  # a peer that need not be there

        return [tensorflow.constant(x) for x in inputs]
    if peer == "jax":
        import jax.numpy  # a peer that need not be there

        return [jax.numpy.asarray(x) for x in inputs]
    return list(inputs)
