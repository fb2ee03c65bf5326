"""Brings the installed timberframe-cpu up to date with what was edited here: ninja compiles it, and it is copied.

``python plugins/cpu/update.py``, with the Python of an environment where ``pip install --no-build-isolation
--config-settings=build-dir=build/wheel plugins/cpu`` has installed it. pip is needed again only after an edit of
pyproject.toml, which becomes the package's metadata.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(__file__).parent / "build" / "wheel"
PLATLIB = "{py_platlib}"


def wanted() -> Iterator[tuple[Path, str]]:
    """Yields files of the package, each with the path where it is installed, relative to site-packages."""
    plan = json.loads((BUILD / "meson-info" / "intro-install_plan.json").read_text())
    for source, entry in (item for group in plan.values() for item in group.items()):
        target = entry["destination"].removeprefix(f"{PLATLIB}/")
        if not Path(source).is_dir():
            yield Path(source), target
            continue
        for file in Path(source).rglob("*"):
            if file.is_file() and file.suffix != ".pyc" and not file.is_symlink():
                yield file, f"{target}/{file.relative_to(source)}"


def update(site: Path) -> None:
    """Makes the package in a folder of packages what the build has; other files in its folder go."""
    kept = set()
    for source, name in wanted():
        target = site / name
        kept.add(target)
        if not target.is_file() or not filecmp.cmp(source, target, shallow=False):
            target.parent.mkdir(exist_ok=True)
            scratch = target.with_name(f".{target.name}.new")
            shutil.copy2(source, scratch)
            scratch.replace(target)  # a process that has the old library mapped keeps it
            print(f"updated {name}")
    for file in (site / "timberframe_cpu").rglob("*"):
        if file.is_file() and file.suffix != ".pyc" and file not in kept:
            file.unlink()
            print(f"removed {file.relative_to(site)}")


if __name__ == "__main__":
    scripts = sysconfig.get_path("scripts")
    # An edit of meson.build has meson called, which asks the first ninja that it finds to clean up. One that is older
    # than the ninja that compiles would drop the log of what has been compiled.
    path = os.pathsep.join((scripts, os.environ["PATH"]))
    command = [str(Path(scripts) / "ninja"), "-C", str(BUILD), "--quiet"]
    if subprocess.run(command, check=False, env={**os.environ, "PATH": path}).returncode:
        sys.exit("timberframe-cpu: not updated, since it does not compile")
    update(Path(sysconfig.get_path("platlib")))
