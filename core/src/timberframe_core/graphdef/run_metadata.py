"""The trace of a run as the RunMetadata message, which TensorBoard reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_core.graph.device_spec import full_name
from timberframe_core.graphdef import messages


def run_metadata_message(trace: Mapping[str, Any] | None, partition_graphs: Sequence[Any]) -> Any:
    """Returns a RunMetadata message: how long each node of a trace took, by device, and graphs.

    trace: in the Trace Event format, as `RunMetadata.trace` has it. What is no node, such as a cluster, is left out.
    Times begin with the run.
    """
    message = messages.RunMetadataMessage(partition_graphs=partition_graphs)
    events = (trace or {}).get("traceEvents", ())
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    devices: dict[int, Any] = {}
    for event in events:
        if "op" in event["args"]:
            track = event["tid"]
            if track not in devices:
                devices[track] = message.step_stats.dev_stats.add(device=full_name(tracks[track]))
            _fill(devices[track].node_stats.add(), event)
    return message


def _fill(stats: Any, event: Mapping[str, Any]) -> None:
    start, length = (round(event[field] * 1000) for field in ("ts", "dur"))  # nanoseconds
    stats.node_name = event["args"].get("node", event["name"])
    stats.timeline_label = f"{stats.node_name} = {event['args']['op']}()"
    stats.thread_id = event["tid"]
    stats.all_start_nanos, stats.all_start_micros = start, start // 1000
    for field in ("op_end_rel", "all_end_rel"):
        setattr(stats, f"{field}_nanos", length)
        setattr(stats, f"{field}_micros", length // 1000)
