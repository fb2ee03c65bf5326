"""Makes changelogs of change notes: ``python release/change_notes.py VERSION``, or ``--check`` to read them alone.

A note is a file ``<package>/changes/<topic>.md`` with what becomes one entry of the package's CHANGELOG.md. A release
puts the entries under the heading of its version, after those under "Unreleased", and removes the notes.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[1]
UNRELEASED = "## Unreleased\n"


def packages(workspace: Path) -> list[Path]:
    """Returns the folders of packages, which have a changelog."""
    return sorted(p.parent for where in ("*", "plugins/*") for p in workspace.glob(f"{where}/CHANGELOG.md"))


def entry(note: Path) -> str:
    """Returns a note as an entry of a list; ValueError where it is none."""
    lines = note.read_text().strip().splitlines()
    if not lines or lines[0].startswith(("#", "- ", "* ")):
        raise ValueError(f"{note}: is {'empty' if not lines else repr(lines[0])}; the text of one entry is required")
    return "\n".join(("- " if n == 0 else "  ") + line for n, line in enumerate(lines)) + "\n"


def with_notes(changelog: str, entries: list[str], heading: str) -> str:
    """Returns a changelog whose unreleased entries, and further ones, are those of a release."""
    before, unreleased, after = changelog.partition(UNRELEASED)
    if not unreleased:
        begin = before.find("\n## ") + 1 or len(before)
        before, after = before[:begin], f"\n{before[begin:]}"
    listed, newer, older = after.partition("\n## ")
    listed = "\n" + listed.strip("\n") + "\n" if listed.strip() else "\n"
    return f"{before}## {heading}\n{listed}{''.join(entries)}{newer}{older}"


def release(workspace: Path, version: str, date: datetime.date) -> None:
    """Writes the changelogs of a release, and removes the notes."""
    for package in packages(workspace):
        notes = sorted(package.glob("changes/*.md"))
        file = package / "CHANGELOG.md"
        text = file.read_text()
        if notes or UNRELEASED in text:
            file.write_text(with_notes(text, list(map(entry, notes)), f"{version} ({date})"))
        else:
            file.write_text(with_notes(text, ["No changes but the version.\n"], f"{version} ({date})"))
        for note in notes:
            note.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes changelogs of change notes.")
    parser.add_argument("version", nargs="?", metavar="VERSION")
    parser.add_argument("--check", action="store_true", help="only read them")
    given = parser.parse_args()
    try:
        for package in packages(WORKSPACE):
            for note in package.glob("changes/*.md"):
                entry(note)
    except ValueError as e:
        sys.exit(f"change notes: {e}")
    if given.version and not given.check:
        release(WORKSPACE, given.version, datetime.date.today())


if __name__ == "__main__":
    main()
