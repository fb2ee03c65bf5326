"""Every page that speaks of CUDA says that no GPU has run it, until a report of one is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REPORTS = ROOT / "conformance" / "results"
LEFT_OUT = ("CHANGELOG.md", "CONTRIBUTING.md")
"""What was changed, and what files a change touches."""
SPEAKS = re.compile(r"cuda(?! C\+\+)|cublas|nccl", re.IGNORECASE)
"""Of CUDA's devices; CUDA C++ is a language."""
SAYS = re.compile(
    r"not (yet )?run on (a GPU|one)|has run on a GPU yet|has run on the emulator only|tried on an emulator only"
    r"|on an emulator and not yet on a GPU|No GPU was there"
    r"|What has no column, such as a GPU that only a plugin is there for, has not been judged",
    re.IGNORECASE,
)


def pages() -> list[Path]:
    """Returns all pages that are kept; those of docs/reference are made by the site."""
    found = [ROOT / "README.md"]
    for room in ("core", "docs", "frontend", "sdk", "conformance", "examples", "plugins", "release"):
        found += sorted((ROOT / room).glob("**/*.md"))
    return [
        p
        for p in found
        if p.name not in LEFT_OUT and not {"build", "changes", "reference"} & {*p.relative_to(ROOT).parts}
    ]


def silent(text: str) -> bool:
    """Returns whether a page speaks of CUDA and does not say that no GPU has run it."""
    return bool(SPEAKS.search(text)) and not SAYS.search(" ".join(text.split()))


@pytest.mark.skipif(any(REPORTS.glob("CUDA*")), reason="a GPU has run it")
def test_every_page_that_speaks_of_cuda_says_that_no_gpu_has_run_it() -> None:
    found = [str(p.relative_to(ROOT)) for p in pages() if silent(p.read_text())]
    assert not found


def test_a_page_that_does_not_say_so_is_found() -> None:
    assert silent("NVIDIA GPUs by timberframe-cuda are fast.")
    assert not silent("NVIDIA GPUs by timberframe-cuda, not\nyet run on one.")
    assert not silent("A driver that compiles CUDA C++.")
