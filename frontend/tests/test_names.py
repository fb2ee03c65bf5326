"""The names of TensorFlow 1 that programs use, as the table `data/tensorflow1_names.tsv` says of each.

have: is here. missing: is not yet. never: is not meant to be; the error says what serves instead. foreign: is not a
name of TensorFlow 1, but a slip of a program; the error says what may be meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from timberframe.compat.absent import hint
from timberframe.compat.programs import resolve

_TABLE = Path(__file__).parent / "data" / "tensorflow1_names.tsv"
_ROWS = [line.split("\t") for line in _TABLE.read_text().splitlines() if not line.startswith("#")]
NAMES = {state: [name for name, _, own in _ROWS if own == state] for state in ("have", "missing", "never", "foreign")}


def is_here(name: str) -> bool:
    try:
        resolve(name)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES["have"])
def test_name_is_here(name: str) -> None:
    assert is_here(name)


@pytest.mark.parametrize("name", NAMES["missing"])
def test_name_is_not_here_yet(name: str) -> None:
    assert not is_here(name)
    assert not hint(name)


@pytest.mark.parametrize("name", NAMES["never"])
def test_name_is_never_here_and_something_serves_instead(name: str) -> None:
    assert not is_here(name)
    assert hint(name)


@pytest.mark.parametrize("name", NAMES["foreign"])
def test_name_that_is_not_tensorflows_is_said_to_be_none(name: str) -> None:
    assert not is_here(name)
    assert hint(name).startswith("not a name of TensorFlow; ")


def test_most_uses_of_names_that_are_tensorflows_are_here() -> None:
    uses = {state: sum(int(count) for _, count, own in _ROWS if own == state) for state in NAMES}
    assert uses["have"] / (uses["have"] + uses["missing"]) >= 0.95
