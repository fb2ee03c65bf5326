"""The command `timberframe-sdk`: `new` writes a package for a device, to begin with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

OK, WRONG_CALL = 0, 2
KINDS = {
    "python": "a driver with a queue and memory of its own, called from Python",
    "c": "kernels in C, through cffi",
    "opencl": "a driver that compiles OpenCL C, with the kernels of timberframe-accelerator",
    "npu": "an arena, a queue, weights packed into lanes of channels, numbers of 16 bits",
    "compiler": "a toolchain that compiles whole graphs",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0, or 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="timberframe-sdk", description="For authors of Timberframe devices.")
    commands = parser.add_subparsers(required=True, metavar="command")
    new = commands.add_parser("new", help="write the folder NAME, a complete package for the device type NAME")
    new.add_argument("name", metavar="NAME", help="lower-case letters and digits, such as acme")
    kinds = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    new.add_argument("--kind", choices=list(KINDS), default="python", help=f"what it is built on ({kinds})")
    new.add_argument("--dtypes", metavar="A,B", default="", help="what the device holds (kind npu): float16,float32")
    given = parser.parse_args(arguments)
    return _new(given.name, given.kind, [d for d in given.dtypes.split(",") if d])


def _new(name: str, kind: str, dtypes: Sequence[str]) -> int:
    from timberframe_sdk.tools.new_package import NewPackageError, create

    try:
        made = create(name, kind, Path.cwd(), dtypes)
    except NewPackageError as e:
        print(f"timberframe-sdk: {e}", file=sys.stderr)
        return WRONG_CALL
    for path in sorted(p for p in made.rglob("*") if p.is_file()):
        print(path.relative_to(Path.cwd()))
    print(f'next: pip install -e "{name}[test]" and conformance run --device={name} --require core')
    return OK


if __name__ == "__main__":
    sys.exit(main())
