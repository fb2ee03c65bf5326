"""aten::sqrt on the CPU: a seventh of the results in float32 are not the nearest number, as IEEE 754 (5.4.1) requires.

Seen with torch 2.13.0 on x86-64. Needs torch and numpy. Status 1: the fault is there.
"""

import sys

import numpy as np
import torch

x = torch.from_numpy(np.random.default_rng(0).uniform(0, 10, 100_000).astype(np.float32))
right = np.sqrt(x.numpy().astype(np.float64)).astype(np.float32)
got = torch.sqrt(x).numpy()
wrong = np.flatnonzero(got != right)
print(len(wrong), "of", len(right), "results differ from the nearest float32; torch", torch.__version__)
for i in wrong[:3]:
    print(f"sqrt({x[i].item()!r}): got {got[i]!r}, expected {right[i]!r}")
sys.exit(len(wrong) > 0)
