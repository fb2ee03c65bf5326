"""Badges of levels, and the list of devices."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance import __version__
from timberframe_conformance.case import LEVELS, Result
from timberframe_conformance.profile import Profile, Tolerance, Waiver
from timberframe_conformance.reports.badge import badge, badge_name
from timberframe_conformance.reports.breadth import pairs
from timberframe_conformance.reports.devices import devices_page
from timberframe_conformance.reports.merge import load_all, newest
from timberframe_conformance.reports.summary import Run

ROOT = Path(__file__).parents[2]
DEVICE = {"spec": "/device:ACME:0", "vendor": "A|B", "model": "One", "driver": "", "dtypes": [], "unsupported_ops": {}}


def run(verdict: str = "pass") -> Run:
    results = [
        Result(f"forward/Relu/float32/{v}", "forward", "Relu", {"T": "float32"}, v, level="core")
        for v in ("pass", verdict)
    ]
    return Run(DEVICE, {"date": "2026-02-03T00:00:00"}, results, 1.0, level="inference")


@pytest.mark.parametrize(
    ("verdict", "level", "said"),
    [
        ("pass", "core", "reached"),
        ("fail", "core", "not reached"),
        ("pass", "inference", "not run"),
        ("pass", "breadth", "not run"),
    ],
)
def test_a_badge_says_whether_its_level_is_reached(verdict: str, level: str, said: str) -> None:
    texts = [t.text for t in ET.fromstring(badge(run(verdict), level)).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [f"timberframe {level}", said]


def test_a_waived_failure_reaches_no_badge() -> None:
    assert ">not reached<" in badge(run("waived"), "core")


def test_devices_are_listed_with_their_levels() -> None:
    lines = devices_page([run("fail")]).splitlines()
    first = lines.index("|device|`/device:ACME:0`|")
    assert lines[first + 1 : first + 12] == [
        "|-|-|", r"|model|A\|B One|", "|core|not reached|", "|inference|not run|", "|training|not run|",
        "|breadth|not run|", "|cases|2|", "|failing|1|", "|waived|0|", f"|suite|{__version__}|", "|run on|2026-02-03|",
    ]  # fmt: skip


def test_what_a_profile_declares_is_listed() -> None:
    found = run()
    found.profile = Profile(
        waivers=[Waiver("*/Tanh/*", "off by 1", datetime.date(2027, 1, 1))],
        tolerances=[Tolerance("Exp", 64, "no table", datetime.date(2027, 1, 1))],
    ).as_dict()
    page = devices_page([found])
    assert "- waiver of `*/Tanh/*`, until 2027-01-01: off by 1\n" in page
    assert "- tolerance of 64 ULP for `Exp`, until 2027-01-01: no table\n" in page


def test_a_device_that_is_the_processor_by_a_driver_says_so() -> None:
    found = Run({**DEVICE, "driver": "1.0", "details": {"platform": "OpenXX"}}, {"processor": "One"}, [], 1.0)
    assert r"|model|A\|B One: the machine's processor, by OpenXX|" in devices_page([found])


def test_the_page_of_devices_is_what_the_reports_make() -> None:
    runs, _ = load_all(sorted((ROOT / "conformance/results").iterdir()))
    assert (ROOT / "docs/devices.md").read_text() == devices_page(runs, "badges")
    made = {badge_name(r, level): badge(r, level) for r in newest(runs) for level in LEVELS}
    assert {p.name: p.read_text() for p in (ROOT / "docs/badges").iterdir()} == made


def test_breadth_counts_pairs_of_op_and_dtypes_by_family() -> None:
    given = [
        ("Relu", "float32", "unsupported"),
        ("Relu", "float32", "pass"),
        ("Relu", "int8", "unsupported"),
        ("Tanh", "float32", "pass"),
        ("Tanh", "float64", "pass"),
        ("Nobody>Has", "float32", "pass"),
    ]
    results = [Result(f"forward/{op}/{t}/{n}", "forward", op, {"T": t}, v) for n, (op, t, v) in enumerate(given)]
    found = Run(DEVICE, {}, results, 1.0)
    assert pairs(found) == {"math": (2, 2), "nn": (1, 2)}
    assert "|math|2|\n|nn|1 of 2|\n|all|3 of 4|" in devices_page([found])


def test_the_page_shows_badges_where_it_is_told_their_folder() -> None:
    assert "![core: reached](shields/ACME-0-core.svg)" in devices_page([run()], "shields")
    assert "![" not in devices_page([run()])


def test_the_command_writes_a_badge_for_each_level(command: Any, tmp_path: Path) -> None:
    report, badges = tmp_path / "run.json", tmp_path / "badges"
    report.write_text(run().to_json())
    assert command("report", str(report), f"--badges={badges}")[0] == 0
    assert sorted(p.name for p in badges.iterdir()) == sorted(f"ACME-0-{level}.svg" for level in LEVELS)


def test_the_page_of_a_vendor_names_no_file_of_this_repository() -> None:
    found = run()
    found.environment.pop("git", None)
    page = devices_page([found])
    assert "](" not in page
    assert "commit" not in page


def test_devices_of_one_name_are_known_by_the_hardware_that_was_chosen() -> None:
    found = [run(), run()]
    for one, hardware in zip(found, ("Left/Provider", "right"), strict=True):
        one.device = {**DEVICE, "model": hardware, "details": {"hardware": hardware}}
    page = devices_page(found)
    assert "|device|`acme:Left/Provider`|`acme:right`|" in page
    assert [badge_name(one, "core") for one in found] == ["ACME-Left-Provider-core.svg", "ACME-right-core.svg"]
