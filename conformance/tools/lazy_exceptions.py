"""Writes which lazy kernels no case finds, and why: ``python conformance/tools/lazy_exceptions.py [SHARES...]``.

``conformance mutants --lazy`` compares with that, so that each new exception is seen. It tries every op, which takes
minutes. ``--share K/N FILE`` tries a share of them and writes that into a file; SHARES are such files, to be put
together.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import timberframe_conformance
from timberframe_conformance.commands import open_device, parse_share
from timberframe_conformance.mutants.prove_lazy import EXCEPTIONS_FILE, prove_lazy
from timberframe_conformance.options import Options, in_share
from timberframe_conformance.target import REFERENCE
from timberframe_core.ops.definition import registry

DATA = Path(timberframe_conformance.__file__).parent / "data" / EXCEPTIONS_FILE


def exceptions(share: tuple[int, int]) -> dict[str, list[str]]:
    """Returns the exceptions of a share of the ops, by reason.

    Ends the process where lazy kernels are missed without one.
    """
    ops = [op for op in registry.all_ops() if in_share(op.name, share)]
    found: dict[str, list[str]] = {}
    missed = False
    for finding in prove_lazy(open_device(Options(REFERENCE)), ops):
        if finding.is_missed:
            print(f"missed: {finding}; a sample that shows it is required", flush=True)
            missed = True
        elif finding.is_exception:
            found.setdefault(finding.excuse, []).append(finding.name)
    if missed:
        raise SystemExit(1)
    return found


def write(path: Path, parts: list[dict[str, list[str]]]) -> None:
    """Writes exceptions in an order that changes little from time to time."""
    reasons = sorted({reason for part in parts for reason in part})
    whole = {reason: sorted(name for part in parts for name in part.get(reason, ())) for reason in reasons}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes which lazy kernels no case finds, and why.")
    parser.add_argument("--share", nargs=2, metavar=("K/N", "FILE"))
    parser.add_argument("shares", nargs="*", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.share:
        write(Path(given.share[1]), [exceptions(parse_share(given.share[0]))])
    else:
        write(DATA, [json.loads(path.read_text(encoding="utf-8")) for path in given.shares] or [exceptions((0, 1))])


if __name__ == "__main__":
    main()
