"""A module as an installed plugin, for tests whose child processes need it, too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "PYTHONPATH"


@contextmanager
def installed_plugin(folder: Path, name: str, module: str) -> Iterator[None]:
    """In the block, this process and its children find the metadata of a package whose plugin `name` is the module.

    folder: an empty one, where the metadata are written. A process that has looked for plugins before does not see it.
    """
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[timberframe]\n{name} = {module}\n")
    old = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = os.pathsep.join(p for p in (str(folder), old) if p)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if old is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = old
