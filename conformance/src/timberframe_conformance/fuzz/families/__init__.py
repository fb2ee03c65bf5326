"""Programs that are no single graph: tapes, pipelines, optimizers, files, edges of numbers, calls in sequence.

Each family draws programs as source text over `tf`. The same text runs here, in TensorFlow or in a model in plain
Python, each in a process of its own (`child.py`); so a failure is a script from the start.
"""

from __future__ import annotations

from timberframe_conformance.fuzz.families import calls, edges, optimizers, pipelines, round_trips, tapes
from timberframe_conformance.fuzz.families.family import Family

FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        tapes.FAMILY, pipelines.FAMILY, optimizers.FAMILY, round_trips.FAMILY, edges.FAMILY, calls.FAMILY,
    )
}  # fmt: skip
"""The families by name."""
