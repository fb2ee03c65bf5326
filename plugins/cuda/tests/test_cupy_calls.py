"""What the plugin uses of CuPy is what CuPy's own sources declare, at each version of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def paths(emulator: None) -> None:
    """The emulator's modules are importable."""


def complaints(**texts: str) -> list[str]:
    """Returns the calls that do not fit. texts: other sources of the plugin's modules."""
    from cupy_calls import table
    from cupy_calls.plugin import SOURCES, uses

    found = []
    sources = {path: texts.get(path.stem, path.read_text()) for path in sorted(SOURCES.glob("*.py"))}
    for use in uses(sources):
        for version, rows in table().items():
            if use.name not in rows:
                found.append(f"{use.where}: {use.name} has no row for CuPy {version}: run cupy_calls/sources.py")
            elif use.call is not None and (why := rows[use.name].complaint(*use.types)):
                found.append(f"{use.where}: CuPy {version}: {why}")
    return found


def text(module: str) -> str:
    from cupy_calls.plugin import SOURCES

    return (SOURCES / f"{module}.py").read_text()


def test_every_use_of_cupy_fits_its_declaration() -> None:
    assert not complaints()


def test_the_table_says_where_each_declaration_is() -> None:
    from cupy_calls import table

    assert {"13.6.0", "14.2.0", "main"} == set(table())
    for rows in table().values():
        for row in rows.values():
            path, line = row.at.rsplit(":", 1)
            assert Path(path).suffix in (".py", ".pyx", ".pxd")
            assert int(line) > 0


def test_rows_that_nothing_uses_are_gone() -> None:
    from cupy_calls import table
    from cupy_calls.plugin import names

    assert set(table()["main"]) == names()


def test_a_function_that_requires_one_more_argument_is_found() -> None:
    """At each function that the plugin calls."""
    from cupy_calls import Row, table
    from cupy_calls.plugin import uses

    changed = set()
    for use in uses():
        row = table()["14.2.0"][use.name]
        if use.call is not None and row.declared.startswith("("):
            more = "(added" + (", " if row.declared[1] != ")" else "") + row.declared[1:].replace(" = ...", "")
            assert "missing a required argument" in Row(row.name, row.at, more).complaint(*use.types), use
            changed.add(use.name)
    assert len(changed) > 40


@pytest.mark.parametrize(
    ("module", "old", "new", "message"),
    [
        ("device", "Event(disable_timing=True)", "Event(timing=False)", "unexpected keyword argument 'timing'"),
        ("device", "runtime.getDeviceProperties(number)", "runtime.getDevicePropertiesOf(number)", "has no row"),
        ("compiler", 'source, "kernel.cu", (), ()', 'source, b"kernel.cu", (), ()', "name is bytes, required is str"),
        ("modules", "tuple(group), given", "list(group), given", "block is list, required is tuple"),
        ("graphs", "graph.launch(stream=device.stream)", "graph.run(stream=device.stream)", "Graph.run has no row"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_is_found(module: str, old: str, new: str, message: str) -> None:
    before = text(module)
    assert old in before
    found = complaints(**{module: before.replace(old, new)})
    assert any(message in one for one in found), found


def test_the_emulated_cupy_is_as_the_table_says(cuda: Any) -> None:
    from cupy_calls.installed import differences

    found, compared = differences()
    assert not found
    assert compared > 50


def test_a_value_of_another_type_is_refused_while_tests_run(cuda: Any) -> None:
    """What a syntax tree does not show: the emulated CuPy refuses what Cython would refuse."""
    from cupy.cuda import Module, runtime

    with pytest.raises(TypeError, match=r"cupy\.cuda\.Module\.load: cubin is str, required is bytes"):
        Module().load("no bytes")
    with pytest.raises(TypeError, match=r"memcpyAsync: dst is ndarray, required is int"):
        runtime.memcpyAsync(np.zeros((2, 2)), 0, 4, 1, 1)
    with pytest.raises(TypeError, match="missing a required argument: 'stream'"):
        runtime.memcpyAsync(1, 0, 4, 1)
