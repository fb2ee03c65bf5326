"""The same values fed in other ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.subject import Subject, bits_differ, oracle

Form = Callable[[np.ndarray], Any]


def _strided(x: np.ndarray) -> Any:
    spread = np.zeros((*x.shape, 2), x.dtype)
    spread[..., 0] = x
    return spread[..., 0]


def _wider(x: np.ndarray) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(np.int64) if x.dtype.kind == "i" else x


def as_list(x: np.ndarray) -> Any:
    """Returns the values as nested lists of Python numbers, if these determine the shape."""
    # An empty list does not show the inner sizes, which TensorFlow does not infer either.
    return x.tolist() if x.size and x.dtype.kind != "V" else x


def _read_only(x: np.ndarray) -> Any:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


FORMS: dict[str, Form] = {
    "lists and Python numbers": as_list,
    "float64 and int64": _wider,
    "strided arrays": _strided,
    "reversed arrays": lambda x: x[::-1].copy()[::-1] if x.ndim else x,
    "arrays in Fortran order": lambda x: x.copy(order="F"),
    "read-only arrays": _read_only,
}


@oracle("feeds")
def feeds(s: Subject) -> int:
    """Lists, numbers, wider dtypes and any strides of the same values give the same bits."""
    if not s.built.feeds:
        return 0
    count = 0
    with s.session() as session:
        for _ in range(2):
            for name, form in FORMS.items():
                given = {t: form(x) for t, x in s.built.feeds.items()}
                before = {t: np.array(x, copy=True) for t, x in given.items() if isinstance(x, np.ndarray)}
                count += s.check_same(s.run(session, feeds=given), f"fed with {name}")
                for t, x in before.items():
                    if bits_differ(given[t], x):
                        raise CaseFailedError(f"fed with {name}, a run changed the array fed for {t.name}")
    return count


@oracle("feed names")
def feed_names(s: Subject) -> int:
    """Feeds by name are feeds."""
    if not s.built.feeds:
        return 0
    with s.session() as session:
        return s.check_same(s.run(session, feeds={t.name: x for t, x in s.built.feeds.items()}), "fed by name")


@oracle("fed intermediate")
def intermediate(s: Subject) -> int:
    """Feeding a value that the graph computes, as it computes it, changes nothing; and a fetch of it gives it back."""
    if s.program.has_updates:
        return 0
    inner = [
        t
        for step, made in zip(s.program.steps, s.built.steps, strict=True)
        if step.kind in ("op", "cond", "while", "call")
        for t in made
    ]
    if not inner:
        return 0
    t = inner[int(s.rng.integers(len(inner)))]
    with s.session() as session:
        value = s.run(session, t)
        got = s.run(session, [t, *s.built.fetches], {**s.built.feeds, t: value})
        difference = bits_differ(got[0], value)
        if difference:
            raise CaseFailedError(f"{t.name} is fed and fetched: {difference}")
        return s.check_close(got[1:], f"with {t.name} fed as it is")
