"""Computes the polynomials of the unary kernels and writes them as C: ``fit_polynomials.py float32 > header``.

Each polynomial is the best one in the sense of the weighted maximum norm (Remez' exchange algorithm, in 60 digits),
with its coefficients rounded to the working precision one after the other, lowest degree first, and the remaining ones
fitted again each time, so that the rounding costs next to nothing. The weight is the reciprocal of the whole function's
value, which makes the error relative. The largest relative error that is left is printed beside each polynomial.

Needs mpmath. The tables of fits are the modules `fits`, for both precisions, `fits_float32` and `fits_float64`;
the headers are the SDK's timberframe/math/polynomials_float32.h and polynomials_float64.h.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import lu_solve, matrix, mp, mpf

mp.dps = 60

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial: `degree`, on [low, high], of `target`, its error multiplied by `weight`.

    doc: what the polynomial stands for, as it goes into the C comment.
    """

    name: str
    doc: str
    degree: int
    low: mpf
    high: mpf
    target: Function
    weight: Function


def extrema_of(error: list[mpf], wanted: int) -> list[int]:
    """Indices of `wanted` extrema of alternating sign, the largest ones."""
    found: list[int] = []
    for i, e in enumerate(error):
        if found and (e > 0) == (error[found[-1]] > 0):
            if abs(e) > abs(error[found[-1]]):
                found[-1] = i
        else:
            found.append(i)
    while len(found) > wanted:
        ends_only = len(found) == wanted + 1
        k = min((0, len(found) - 1) if ends_only else range(len(found)), key=lambda j: abs(error[found[j]]))
        drop = (
            [k]
            if k in (0, len(found) - 1)
            else [k, k + 1 if abs(error[found[k + 1]]) < abs(error[found[k - 1]]) else k - 1]
        )
        found = [x for j, x in enumerate(found) if j not in drop]
    return found


def remez(xs: list[mpf], values: list[mpf], weights: list[mpf], powers: range) -> list[mpf]:
    """Coefficients of the best sum of c_k x^k, k in `powers`, on the grid xs, in the weighted maximum norm."""
    count = len(powers)
    last = len(xs) - 1
    points = [round(last * (1 - float(mp.cos(mp.pi * j / count))) / 2) for j in range(count + 1)]
    coefficients: list[mpf] = []
    for _ in range(30):
        system = matrix(count + 1, count + 1)
        right = matrix(count + 1, 1)
        for row, i in enumerate(points):
            for column, k in enumerate(powers):
                system[row, column] = xs[i] ** k * weights[i]
            system[row, count] = (-1) ** row
            right[row] = values[i] * weights[i]
        solution = lu_solve(system, right)
        coefficients = list(solution[:count])
        error = [
            (v - sum(c * x**k for c, k in zip(coefficients, powers, strict=True))) * w
            for x, v, w in zip(xs, values, weights, strict=True)
        ]
        level, worst = abs(solution[count]), max(map(abs, error))
        if worst <= level * mpf("1.01"):
            break
        found = extrema_of(error, count + 1)
        if len(found) < count + 1:
            break
        points = found
    return coefficients


def value(coefficients: Sequence[mpf], x: mpf) -> mpf:
    """Returns the polynomial with these coefficients, constant term first."""
    return sum(c * x**k for k, c in enumerate(coefficients))


def quotient(
    target: Function, weight: Function, low: mpf, high: mpf, top: int, bottom: int
) -> tuple[list[mpf], list[mpf]]:
    """Numerator of degree `top` and denominator of degree `bottom`, both with constant term 1, of the best quotient.

    Best in the maximum norm of the relative error times the weight; Remez' exchange, its equations solved by Newton's
    method.
    """
    xs = chebyshev(low, high, 800)
    values, weights = [target(x) for x in xs], [weight(x) for x in xs]
    count = top + bottom + 1
    points = [round((len(xs) - 1) * (1 - float(mp.cos(mp.pi * (j + 0.5) / count))) / 2) for j in range(count)]
    numerator, denominator, level = [mpf(1)], [mpf(1)], mpf(0)
    for _ in range(60):
        for _ in range(20):
            system, right = matrix(count, count), matrix(count, 1)
            for row, i in enumerate(points):
                x, f, sign = xs[i], values[i], (-1) ** row / weights[i]
                slope = f * sign * value(denominator, x)
                for k in range(1, top + 1):
                    system[row, k - 1] = x**k
                for k in range(1, bottom + 1):
                    system[row, top + k - 1] = -f * (1 + sign * level) * x**k
                system[row, count - 1] = -slope
                right[row] = f * (1 + sign * level) - 1 - slope * level
            solution = list(lu_solve(system, right))
            numerator, denominator = [mpf(1), *solution[:top]], [mpf(1), *solution[top : top + bottom]]
            level = solution[-1]
        error = [
            (value(numerator, x) / value(denominator, x) / f - 1) * w
            for x, f, w in zip(xs, values, weights, strict=True)
        ]
        if max(map(abs, error)) <= abs(level) * mpf("1.01"):
            break
        points = extrema_of(error, count)
    return numerator, denominator


def chebyshev(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Points that crowd towards the ends; shifted so that none meets the middle, where 0 / 0 may wait."""
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (j + mpf("0.37")) / count) for j in range(count)]


def rounded(x: mpf, bits: int) -> mpf:
    """x in a binary format of this many significant bits, nearest."""
    if x == 0:
        return x
    _, exponent = mp.frexp(x)
    scale = mpf(2) ** (bits - exponent)
    return mp.nint(x * scale) / scale


def fit(job: Fit, bits: int) -> tuple[list[mpf], mpf]:
    """Returns the rounded coefficients, constant term first, and the largest weighted error."""
    xs = chebyshev(mpf(job.low), mpf(job.high), 40 * (job.degree + 2))
    values = [job.target(x) for x in xs]
    weights = [abs(job.weight(x)) for x in xs]
    fixed: list[mpf] = []
    rest = values
    for k in range(job.degree + 1):
        free = remez(xs, rest, weights, range(k, job.degree + 1))
        fixed.append(rounded(free[0], bits))
        rest = [r - fixed[-1] * x**k for r, x in zip(rest, xs, strict=True)]
    return fixed, max(abs(r * w) for r, w in zip(rest, weights, strict=True))


def c_literal(x: mpf, bits: int) -> str:
    """x, which has at most `bits` bits, as a hexadecimal floating constant."""
    mantissa, exponent = float(x).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" + ("f" if bits == 24 else "")


def c_expression(literals: Sequence[str], fma: str, powers: Sequence[str]) -> str:
    """Returns the polynomial by halves (Estrin's scheme): the chain of dependent operations
    grows with log2 of the degree.

    powers: the names of x, x^2, x^4, ...
    """
    if len(literals) == 1:
        return literals[0]
    half = 1
    while 2 * half < len(literals):
        half *= 2
    low, high = (c_expression(part, fma, powers) for part in (literals[:half], literals[half:]))
    return f"{fma}({high}, {powers[half.bit_length() - 1]}, {low})"


def c_function(job: Fit, bits: int) -> str:
    """Returns the polynomial as a C function."""
    coefficients, error = fit(job, bits)
    kind, fma = ("float", "tf_fma_f32") if bits == 24 else ("double", "tf_fma_f64")
    literals = [c_literal(c, bits) for c in coefficients]
    powers, steps = ["x"], []
    if len(literals) == 3:  # Horner's scheme has one operation less, and its chain is no longer
        result = f"{fma}({fma}({literals[2]}, x, {literals[1]}), x, {literals[0]})"
    else:
        while 2 ** len(powers) < len(literals):
            power = f"x{2 ** len(powers)}"
            steps.append(f"  {kind} {power} = {powers[-1]} * {powers[-1]};")
            powers.append(power)
        result = c_expression(literals, fma, powers)
    close = f"relative error at most 2^{mp.nstr(mp.log(error, 2), 4)}" if error > mp.eps * 1000 else "exactly"
    comment = f"/* {job.doc} for x in [{mp.nstr(mpf(job.low), 6)}, {mp.nstr(mpf(job.high), 6)}]; {close}. */"
    return "\n".join(
        [
            textwrap.fill(comment, 120, subsequent_indent=" * "),
            f"static inline {kind} tf_{job.name}({kind} x) {{",
            *steps,
            textwrap.fill(f"  return {result};", 120, subsequent_indent="    ", break_on_hyphens=False),
            "}",
        ]
    )


def main() -> None:
    """Writes the header of the precision named on the command line."""
    precision = sys.argv[1]
    wanted = sys.argv[2:]
    bits = {"float32": 24, "float64": 53}[precision]
    fits: list[Fit] = importlib.import_module(f"fits_{precision}").FITS
    guard = f"TIMBERFRAME_MATH_POLYNOMIALS_{precision.upper()}_H"
    print(f"/* Polynomials of the {precision} kernels. Written by tools/fit_polynomials.py; do not edit. */")
    print(f"#ifndef {guard}\n#define {guard}\n\n#include <timberframe/math/fma.h>\n")
    for job in fits:
        if not wanted or job.name in wanted:
            print(c_function(job, bits) + "\n", flush=True)
    print("#endif")


if __name__ == "__main__":
    # The tables import this module by its name: run that copy, whose classes are theirs.
    importlib.import_module("fit_polynomials").main()
