"""The key of a compiled source: it follows the headers that the source includes, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from timberframe_sdk.include import headers
from timberframe_sdk.include.headers import headers_digest

SOURCE = "#include <math.h>\n#  include <used.h>\nint f(void) { return 0; }\n"


@pytest.fixture
def digest(tmp_path: Path) -> Callable[..., str]:
    """Writes headers by name, and gives the digest for a source."""
    write(tmp_path, **{"used.h": '#include "deep/inner.h"\n', "deep/inner.h": "#define A 1\n", "other.h": "int b;\n"})

    def compute(source: str = SOURCE, first: tuple[Path, ...] = (), **texts: str) -> str:
        write(tmp_path, **texts)
        headers._text.cache_clear()
        return headers_digest(source, [tmp_path], first)

    return compute


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def test_a_header_that_is_not_included_leaves_the_key(digest: Callable[..., str]) -> None:
    assert digest() == digest(**{"other.h": "int c;\n"})


@pytest.mark.parametrize("name", ["used.h", "deep/inner.h"])
def test_an_included_header_changes_the_key(name: str, digest: Callable[..., str]) -> None:
    assert digest() != digest(**{name: "#define A 2\n"})


def test_a_header_beside_the_including_one_is_found(digest: Callable[..., str]) -> None:
    before = digest(**{"deep/inner.h": '#include "beside.h"\n', "deep/beside.h": "int d;\n"})
    assert before != digest(**{"deep/beside.h": "int e;\n"})


def test_headers_that_include_each_other_are_read_once(digest: Callable[..., str]) -> None:
    assert digest(**{"deep/inner.h": "#include <used.h>\n"})


def test_a_header_read_before_the_source_changes_the_key(digest: Callable[..., str], tmp_path: Path) -> None:
    first = tmp_path / "other.h"
    assert digest(first=(first,)) != digest(first=(first,), **{"other.h": "int c;\n"})
