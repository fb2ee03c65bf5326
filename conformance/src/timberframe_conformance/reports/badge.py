"""A badge of a level: a small SVG for a README."""

from __future__ import annotations

import re
from html import escape

from timberframe_conformance.reports.summary import Run
from timberframe_sdk import HARDWARE

REACHED, NOT_REACHED, NOT_RUN = "#0b6e4f", "#a8321e", "#565e66"
_LETTER, _PAD = 6.6, 8


def badge_name(run: Run, level: str) -> str:
    """Returns its file's name: CPU-0-core.svg, or ORT-CPUExecutionProvider-core.svg where the hardware was chosen."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', device_label(run))}-{level}.svg"


def device_heading(run: Run) -> str:
    """Returns what the list of devices calls a device: its name in graphs, or what `--device` chose its hardware by."""
    hardware = run.device.get("details", {}).get(HARDWARE)
    spec = str(run.device["spec"])
    return f"{spec.removeprefix('/device:').partition(':')[0].lower()}:{hardware}" if hardware else spec


def device_label(run: Run) -> str:
    """Returns what reports call a device: type and index, or type and hardware where that was chosen."""
    name = str(run.device["spec"].removeprefix("/device:"))
    hardware = run.device.get("details", {}).get(HARDWARE)
    return f"{name.partition(':')[0]}:{hardware}" if hardware else name


def badge(run: Run, level: str) -> str:
    """Returns the badge of one level: the device, the level, and whether it is reached; text
    has 4.5:1 contrast or more.
    """
    found = run.levels().get(level)
    if found is None or not found["cases"] or (run.partial and not found["reached"]):
        verdict, colour = "not run", NOT_RUN
    else:
        verdict, colour = ("reached", REACHED) if found["reached"] else ("not reached", NOT_REACHED)
    name, said = f"timberframe {level}", verdict
    left, right = (round(_LETTER * len(text)) + 2 * _PAD for text in (name, said))
    title = escape(f"{device_heading(run)}: level {level}, suite {run.suite_version}: {verdict}")
    font = 'fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{left + right}" height="20" rx="3" fill="{colour}"/>'
        f'<path d="M3 0H{left}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0Z" fill="#2f353b"/>'
        f'<g {font}><text x="{_PAD}" y="14" textLength="{left - 2 * _PAD}">{escape(name)}</text>'
        f'<text x="{left + _PAD}" y="14" textLength="{right - 2 * _PAD}">{escape(said)}</text></g></svg>\n'
    )
