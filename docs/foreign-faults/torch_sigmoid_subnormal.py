"""aten::sigmoid on the CPU: below -88.72, where exp(-x) overflows, it is 0; the true values are subnormal numbers.

Other functions keep them: torch's own exp(-88.8) is 2.72e-39. Seen with torch 2.13.0 on x86-64. Needs torch. Status 1:
the fault is there.
"""

import sys

import torch

x = torch.tensor([-88.0, -88.8, -89.5, -95.0] * 4)
got, right = torch.sigmoid(x), torch.sigmoid(x.double())
print("got", got[:4].tolist(), "expected", right[:4].tolist(), "exp", torch.exp(x)[:4].tolist())
sys.exit(bool((got[1:4] == 0).any()))
