"""The same tensors fetched in other possible."""

from __future__ import annotations

import collections
from typing import Any

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.oracles.feeds import as_list
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_core import nest

STRUCTURES = 4
"""How many structures, besides the one with duplicates, are tried with each program."""

Pair = collections.namedtuple("Pair", ["left", "right"])


def structures(fetches: list[Any]) -> dict[str, Any]:
    """Fetches in structures that Session.run takes."""
    first, last = fetches[0], fetches[-1]
    return {
        "a single tensor": first,
        "a list of one": [first],
        "a tuple": tuple(fetches),
        "a list with duplicates": [first, first, *fetches, last],
        "a dict": {f"key{i}": t for i, t in enumerate(fetches)},
        "a dict of one": {"key": first},
        "a namedtuple": Pair(first, last),
        "a nested structure": [{"a": first, "b": (last, [first])}, Pair([last], tuple(fetches)), []],
        "names": [t.name for t in fetches],
    }


@oracle("fetches")
def fetches(s: Subject) -> int:
    """Lists, tuples, dicts, duplicates, nested structures and names give the same values in the same structure."""
    if s.program.updates > 1:  # without some of the fetches, some updates do not run
        return 0
    index = {t: i for i, t in enumerate(s.built.fetches)}
    index |= {t.name: i for t, i in index.items()}
    count = 0
    possible = structures(s.built.fetches)
    tried = ["a list with duplicates", *s.rng.permutation([w for w in possible if "duplicates" not in w])[:STRUCTURES]]
    for what, structure in ((w, possible[w]) for w in tried):
        wanted = nest.flatten(structure)
        with s.session() as session:
            for run in ("first", "second", "third"):
                # In a repeated run lists take another code path than arrays.
                feeds = {t: as_list(x) for t, x in s.built.feeds.items()} if run == "third" else None
                got = s.run(session, structure, feeds)
                if type(got) is not type(structure) and isinstance(structure, list | tuple | dict):
                    raise CaseFailedError(f"{what} is fetched, in the {run} run: {type(got).__name__} comes back")
                flat = nest.flatten(got) if isinstance(structure, list | tuple | dict) else [got]
                if len(flat) != len(wanted):
                    raise CaseFailedError(
                        f"{what} of {len(wanted)} is fetched, in the {run} run: {len(flat)} come back"
                    )
                count += s.check_close(flat, f"{what} is fetched, in the {run} run", [index[t] for t in wanted])
    return count


@oracle("each alone")
def alone(s: Subject) -> int:
    """Each result is the same when it alone is fetched."""
    if s.program.updates > 1:
        return 0
    count = 0
    with s.session() as session:
        for i, t in enumerate(s.built.fetches):
            for _ in range(2):
                count += s.check_close([s.run(session, t)], f"result {i} is fetched alone", [i])
    return count


@oracle("make_callable")
def make_callable(s: Subject) -> int:
    """A callable gives what run gives, in the structure that was asked for, again and again."""
    feeds = list(s.built.feeds)
    count = 0
    for duplicates in (False, True):
        wanted = [*s.built.fetches, *s.built.fetches[:1]] if duplicates else s.built.fetches
        with s.session() as session:
            call = session.make_callable(wanted, feeds)
            for run in ("first", "second", "third"):
                if s.program.has_updates:
                    session.run(s.built.initializers)
                got = call(*s.built.feeds.values())
                numbers = [*range(len(s.built.fetches)), *([0] if duplicates else [])]
                if len(got) != len(numbers):
                    raise CaseFailedError(f"the {run} call of a callable gives {len(got)} results, not {len(numbers)}")
                count += s.check_close(got, f"the {run} call of a callable", numbers)
    return count
