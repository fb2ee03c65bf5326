"""Writes a package for a device: a copy of one of the packages in templates/, under another name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TEMPLATES = Path(__file__).parents[1] / "templates"
TAKEN = frozenset(
    {"accelerator", "all", "async", "conformance", "core", "cpu", "cuda", "gpu", "numpy", "opencl", "process"}
    | {"reference", "sdk", "serving"}
)
"""Names that packages or devices of Timberframe's own have."""
_NAME = re.compile(r"[a-z][a-z0-9]*")
_MADE = re.compile(r"__pycache__|\..*_cache|.*\.(egg-info|so|pyd|o|pyc)|build|dist|_native\.c")
"""What working on a template leaves in its folder."""
_DTYPES = re.compile(r"^DTYPES = \(.*?\)", re.MULTILINE)
"""The line of a template that says what its device holds, in those whose kernels follow it."""
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64")
"""The dtypes that kernels of templates can compute with."""


class NewPackageError(ValueError):
    """A package cannot be written; the message says why, and what is required."""


def create(name: str, kind: str, folder: Path, dtypes: Sequence[str] = ()) -> Path:
    """Writes the package timberframe-NAME, for the device type NAME in capitals, into a new folder NAME; gives that.

    kind: the name of a folder in templates/. dtypes: what the device holds, in place of what the template says. Raises
    NewPackageError.
    """
    if not _NAME.fullmatch(name):
        raise NewPackageError(f"name {name!r}: lower-case letters and digits are required, a letter first")
    if name in TAKEN:
        raise NewPackageError(f"name {name!r}: a part of Timberframe has it; a name of your own is required")
    target = folder / name
    if target.exists():
        raise NewPackageError(f"folder {target}: exists; a new one is required")
    texts = {source.relative_to(TEMPLATES / kind).as_posix(): source.read_text() for source in _files(TEMPLATES / kind)}
    if dtypes:
        texts = _holding(dtypes, kind, texts)
    for path, text in texts.items():
        made = target / renamed(path, kind, name)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(renamed(text, kind, name))
    return target


def _holding(dtypes: Sequence[str], kind: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of a template with other dtypes."""
    wrong = [d for d in dtypes if d not in DTYPES]
    if wrong:
        raise NewPackageError(f"dtypes {', '.join(wrong)}: must be of {', '.join(DTYPES)}")
    line = f"DTYPES = {tuple(dtypes)}".replace("'", '"')
    found = {path: _DTYPES.sub(line, text) for path, text in texts.items()}
    if not any(map(_DTYPES.search, texts.values())):
        raise NewPackageError(f"kind {kind}: its kernels hold what they hold; dtypes can be chosen for kind npu")
    return found


def renamed(text: str, kind: str, name: str) -> str:
    """Returns a text of a template with another name of the device, in small letters, in
    capitals and as part of a class.
    """
    old = f"acme{kind}"
    return text.replace(old, name).replace(old.upper(), name.upper()).replace(old.capitalize(), name.capitalize())


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if _MADE.fullmatch(path.name):
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path
