"""Writes the data files of the levels from the networks: ``python -m timberframe_conformance.levels``."""

from __future__ import annotations

from pathlib import Path

from timberframe_conformance.case import LEVELS
from timberframe_conformance.levels.derive import derive, written
from timberframe_conformance.levels.requirement import data_file


def main() -> None:
    """Writes each level's file in the source tree and says how many ops it holds."""
    for level in LEVELS[:-1]:
        entries = derive(level)
        path = Path(str(data_file(level)))
        path.write_text(written(entries))
        print(f"{path}: {len(entries)} ways to call {len({e['op'] for e in entries})} ops")


if __name__ == "__main__":
    main()
