"""Gives all packages a version, and requires it of each other: ``python release/set_version.py 0.2.0``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(\d+)\.(\d+)\.\d+((?:a|b|rc)\d+)?")


def with_version(text: str, version: str) -> str:
    """Returns a file with the version of its package."""
    for before in ('version = "', '__version__ = "'):
        text = re.sub(rf'^{before}[^"]+"', f'{before}{version}"', text, flags=re.MULTILINE)
    text = re.sub(r"^version: \S+$", f"version: {version}", text, flags=re.MULTILINE)
    return re.sub(r"version: '[^']+',\n  license", f"version: '{version}',\n  license", text)


def with_requirements(text: str, version: str, *, bounded: bool = True) -> str:
    """Returns a package's file with what it requires of the other packages: the same major and minor version.

    bounded: False for a vendor's package, which newer versions serve as long as they have the contract that it names.
    """
    found = VERSION.fullmatch(version)
    assert found is not None, version
    major, minor, preliminary = found.groups()
    bounds = f">={major}.{minor}{'a0' if preliminary else ''}" + (f",<{major}.{int(minor) + 1}" if bounded else "")
    text = re.sub(r'(timberframe-core(?:\[\w+\])?==)[^"]+', rf"\g<1>{version}", text)
    return re.sub(r'(timberframe[\w\[\]-]*)>=[^";]+', rf"\g<1>{bounds}", text)


def main() -> None:
    version = sys.argv[1] if len(sys.argv) == 2 else ""
    if not VERSION.fullmatch(version):
        sys.exit("set_version: a version such as 0.2.0 or 0.2.0rc1 is required")
    own = [f for where in ("*", "plugins/*") for f in WORKSPACE.glob(f"{where}/pyproject.toml")]
    own += WORKSPACE.glob("*/src/timberframe*/__init__.py")
    own += [WORKSPACE / "plugins/cpu/meson.build", WORKSPACE / "CITATION.cff"]
    for file in own:
        file.write_text(with_requirements(with_version(file.read_text(), version), version))
    for where in ("sdk/src/timberframe_sdk/templates/*", "examples/*"):  # their own version is a vendor's
        for file in WORKSPACE.glob(f"{where}/pyproject.toml"):
            file.write_text(with_requirements(file.read_text(), version, bounded=False))


if __name__ == "__main__":
    main()
