"""Makes a package index of dist/ that pip can read: ``python release/local_index.py FOLDER``.

A release is tried with it before it is published: ``pip install --index-url file://FOLDER timberframe``, with a second
index for the packages of others.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DIST = Path(__file__).resolve().parents[1] / "dist"


def make_index(dist: Path, folder: Path) -> list[str]:
    """Copies what is to be published into a folder with the pages of a simple index; the names of its packages."""
    names: set[str] = set()
    for file in sorted(dist.iterdir()):
        name = re.sub(r"[-_.]+", "-", file.name.split("-")[0]).lower()
        names.add(name)
        (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / name)
    for name in names:
        links = "".join(f'<a href="{f.name}">{f.name}</a><br>\n' for f in sorted((folder / name).iterdir()))
        (folder / name / "index.html").write_text(f"<!DOCTYPE html>\n{links}")
    (folder / "index.html").write_text("".join(f'<a href="{n}/">{n}</a><br>\n' for n in sorted(names)))
    return sorted(names)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("local_index: the folder to write is required")
    print("\n".join(make_index(DIST, Path(sys.argv[1]))))
