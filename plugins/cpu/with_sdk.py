"""Puts what a build needs of the SDK into a source distribution: ``with_sdk.py INCLUDE``, called by `meson dist`.

INCLUDE: the SDK's folder of headers. So whoever builds from the distribution needs no SDK, and has the one that belongs
to these sources.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NEEDED = ("include", "elementwise")


def main(include: Path) -> None:
    target = Path(os.environ["MESON_DIST_ROOT"]) / "timberframe_sdk"
    for name in NEEDED:
        shutil.copytree(include.parent / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
