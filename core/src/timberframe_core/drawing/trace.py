"""A trace of a run as a page: what ran when on each track, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe_core.drawing.page import asset, page

_OWN = "timberframe_core.drawing"
_BODY = """<p class="muted">A line for each track of the run. Buttons, the wheel with Ctrl, and the keys + and - zoom;
the arrow keys move. What hovers over an event says how long it took, and on what.</p>
<p class="tools"><button type="button" id="nearer">Zoom in</button> <button type="button" id="farther">Zoom out</button>
<button type="button" id="all">Whole run</button> <output id="window"></output></p>
<div id="timeline" tabindex="0" role="group" aria-label="timeline"></div>
<section aria-labelledby="totals-head"><h2 id="totals-head">Where the time went</h2><div id="totals"></div></section>
<section aria-labelledby="events-head"><h2 id="events-head">Events</h2>
<p><label>Search <input type="search" id="search" placeholder="a node, an op, a track"></label></p>
<div id="events"></div></section>"""


def trace_page(trace: Mapping[str, Any]) -> str:
    """Returns the page of a trace in the Trace Event format, as `RunMetadata.trace` has it; times
    are in microseconds there.
    """
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    events = [
        {
            "name": e["name"], "kind": e.get("cat", ""), "track": names.get(e["tid"], str(e["tid"])), "start": e["ts"],
            "length": e["dur"], "details": {k: str(v) for k, v in e.get("args", {}).items()},
        }
        for e in trace["traceEvents"] if e["ph"] == "X"
    ]  # fmt: skip
    return page("Trace of a run", _BODY, events, [asset(_OWN, "trace.css")], [asset(_OWN, "trace.js")])
