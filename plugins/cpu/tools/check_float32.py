"""Holds the float32 kernels against the float64 ones over all 2^32 arguments: ``check_float32.py [step] [names]``.

With a step n only every n-th argument. Prints the worst error of each function in ULP (Muller's) and its argument, for
every instruction set of this machine. The float64 kernels' own error is a billionth of a float32 ULP. Without a step a
function takes some minutes.
"""

from __future__ import annotations

import sys

import numpy as np

from timberframe_cpu.native import available_isas, call, native, using_isa

NAMES = (
    "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "sigmoid", "softplus", "elu", "selu", "reciprocal", "sqrt", "rsqrt",
)  # fmt: skip
BLOCK = 1 << 20
LARGEST = float(np.finfo(np.float32).max)


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in ULP; beyond the largest number, infinity counts as the number after it."""
    overflow = 2.0**128
    wide = np.clip(got.astype(np.float64), -overflow, overflow)
    truth = np.clip(exact, -overflow, overflow)
    _, exponent = np.frexp(np.minimum(np.abs(truth), LARGEST))
    error = np.abs(wide - truth) / np.ldexp(1.0, np.maximum(exponent - 24, -149))
    return np.where((wide == truth) | (np.isnan(got) & np.isnan(exact)), 0.0, np.where(np.isnan(error), np.inf, error))


def worst(name: str, isa: str, step: int) -> tuple[float, float]:
    """Returns the largest error and its argument."""
    found = (0.0, 0.0)
    with using_isa(isa):
        narrow, double = native(f"{name}_float32"), native(f"{name}_float64")
    for start in range(0, 1 << 32, BLOCK * step):
        bits = np.arange(start, min(start + BLOCK * step, 1 << 32), step, dtype=np.uint64).astype(np.uint32)
        x = bits.view(np.float32)
        got, exact = np.empty_like(x), np.empty(x.shape)
        call(narrow, [x], [got])
        call(double, [x.astype(np.float64)], [exact])
        error = errors(got, exact)
        at = int(np.argmax(error))
        if error[at] > found[0]:
            found = (float(error[at]), float(x[at]))
    return found


def main() -> None:
    """Checks the functions named on the command line, or all."""
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with np.errstate(all="ignore"):
        for name in sys.argv[2:] or NAMES:
            for isa in available_isas():
                error, argument = worst(name, isa, step)
                print(f"{name:10} {isa:7} {error:7.3f} ULP at {argument!r}", flush=True)


if __name__ == "__main__":
    main()
