"""Convolution's gradients and batch norm in training, on the CPU: other bits with two threads than with one.

Seen with torch 2.13.0 on x86-64. Needs torch and numpy. Status 1: the bits differ.
"""

import sys

import numpy as np
import torch

torch.use_deterministic_algorithms(True)
rng = np.random.default_rng(0)


def images(*shape: int) -> torch.Tensor:
    """Returns normal images with the channels last in memory; shape: batch, height, width, channels."""
    return torch.from_numpy(rng.normal(size=shape).astype(np.float32)).permute(0, 3, 1, 2)


def backward(x: torch.Tensor, w: torch.Tensor, gradient: torch.Tensor, of: int) -> torch.Tensor:
    """Returns the gradient of a convolution by its input (of: 0) or its filter (1)."""
    padding, wanted = [w.shape[2] // 2] * 2, [i == of for i in range(3)]
    made = torch.ops.aten.convolution_backward(gradient, x, w, None, [1, 1], padding, [1, 1], False, [0, 0], 1, wanted)
    return made[of]


def batch_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.native_batch_norm(x, torch.ones(8), torch.zeros(8), None, None, True, 0.0, 1e-3)[0]


narrow, wide = images(4, 4, 4, 8), images(4, 4, 4, 32)
filters = torch.from_numpy(rng.normal(size=(32, 8, 1, 1)).astype(np.float32))
x, gradient = images(4, 12, 12, 1), images(4, 12, 12, 4)
calls = {
    "convolution_backward by the filter": lambda: backward(x, torch.zeros(4, 1, 3, 3), gradient, of=1),
    "convolution_backward by the input": lambda: backward(torch.zeros_like(narrow), filters, wide, of=0),
    "native_batch_norm in training": lambda: batch_norm(narrow),
}
found = False
for name, call in calls.items():
    made = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        made.append(call().numpy())
    differ = int((made[0] != made[1]).sum())
    print(f"{name}: {differ} of {made[0].size} elements differ; torch {torch.__version__}")
    found = found or differ > 0
sys.exit(found)
