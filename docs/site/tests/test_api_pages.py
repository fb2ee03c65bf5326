"""The API reference has the public names, each with its signature and docstring."""

from __future__ import annotations

from functools import cache

import pytest

import timberframe as tf
import timberframe_sdk as sdk
from api_pages import Pages, members, pages
from navigation import ROOT
from parameters import described_elsewhere


@cache
def made() -> dict[str, str]:
    """Returns all pages; made in a test, since it loads what other files find not loaded when
    their tests are collected.
    """
    return dict(pages())


def area(n: int, m: int = 2) -> int:
    """Returns the area of n x m_squares.

    n: how many
        in a row.
    other: not a parameter.
    """
    return n * m


class Base:
    """A base."""

    @property
    def size(self) -> int:
        """How large it is."""
        return 0

    def grow(self, by: int = 1) -> None:
        """Makes it larger."""

    def _hidden(self) -> None: ...


def test_a_page_has_signature_and_docstring() -> None:
    text = Pages().page("x", "x.", {"area": area})
    assert "{py:function} x.area(n, m=2)\n" in text
    assert "Returns the area of n x m\\_squares." in text


def test_parameters_are_a_list() -> None:
    assert "\n- **n**: how many\n  in a row.\n" in Pages().page("x", "x.", {"area": area})


def volume(n: int, m: int = 2, height: int = 1) -> int:
    """Returns the volume; n and the others are those of `area`, and height is in metres."""
    return n * m * height


def shadow(height: int, m: int = 2) -> int:
    """Returns the shadow of a volume.

    height: above the ground. m: how many in a column. More is said elsewhere.
    """
    return height * m


def darkness(m: int) -> int:
    """Returns how dark it is; arguments are as of `shade`."""
    return m


def shade(height: int, m: int) -> int:
    """Returns the share that is dark; see `shadow` for the arguments."""
    return height * m


def test_a_parameter_that_a_docstring_leaves_to_another_is_described_on_the_spot() -> None:
    assert described_elsewhere(shade) == {
        "m": ("how many in a column.", "shadow"),
        "height": ("above the ground.", "shadow"),
    }
    assert "\n- **m**, as of `shadow`: how many in a column.\n" in Pages().page("x", "x.", {"darkness": darkness})
    assert described_elsewhere(volume) == {}  # n and height stand in its text, and nobody describes m


def test_a_class_describes_what_its_bases_do() -> None:
    assert described_elsewhere(tf.layers.AveragePooling1D)["strides"][1] == "MaxPooling2D"
    assert described_elsewhere(tf.layers.AveragePooling1D)["name"][1] == "Layer"


def test_a_class_has_its_public_members() -> None:
    text = Pages().page("x", "x.", {"Base": Base})
    assert "{py:class} x.Base()" in text
    assert "{py:property} size\n\nHow large it is.\n" in text
    assert "{py:method} grow(by=1)\n\nMakes it larger.\n" in text
    assert "_hidden" not in text


def test_a_second_name_refers_to_the_first() -> None:
    make = Pages()
    first = make.page("x", "x.", {"area": area, "surface": area})
    assert "- `x.surface` is {py:obj}`x.area`" in first
    assert "- `y.area` is {py:obj}`x.area`" in make.page("y", "y.", {"area": area})


@pytest.mark.parametrize("name", ["Session", "placeholder", "nn.relu", "train.AdamOptimizer", "data.Dataset"])
def test_names_of_tensorflow_are_on_the_page_of_their_namespace(name: str) -> None:
    namespace = f"tf.{name}".rpartition(".")[0]
    assert f" tf.{name}(" in made()[f"{namespace}.md"]


def test_every_name_that_programs_use_is_on_a_page() -> None:
    lines = (ROOT / "frontend/tests/data/tensorflow1_names.tsv").read_text().splitlines()
    used = [line.split("\t")[0] for line in lines if line.endswith("\thave") and "compat." not in line]
    text = "".join(made().values())
    missing = [n for n in used if f" tf.{n}(" not in text and f"`tf.{n}`" not in text and f"tf.{n}.md" not in made()]
    assert len(used) > 400
    assert [n for n in missing if not n.startswith("_")] == []


def test_every_export_of_the_sdk_is_on_a_page() -> None:
    missing = [n for n in members(sdk) if f"timberframe_sdk.{n}" not in made()["sdk.md"]]
    assert missing == []
    assert "timberframe_kernels" in made()["hooks.md"]
