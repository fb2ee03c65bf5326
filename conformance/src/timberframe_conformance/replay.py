"""Judges the outputs of an op, or runs one case by its id, for the scripts that `conformance repro` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.collect import find_case
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target
from timberframe_conformance.tolerance.compare import check
from timberframe_conformance.truth import reference
from timberframe_core.ops.definition.opdef import OpDef


def judge_outputs(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], got: Any) -> None:
    """Compares what an op gave with the truth; prints what is wrong, and ends the program with status 1 then.

    got: an output, or the list of them.
    """
    outputs = list(got) if isinstance(got, list | tuple) else [got]
    dtypes = [x.dtype for x in reference.evaluate(op, attrs, inputs)]
    try:
        check(op, attrs, inputs, outputs, dtypes)
    except CaseFailedError as e:
        print(e)
        raise SystemExit(1) from None
    print("right, within the limit of the op")


def replay(case_id: str, device: str, settings: tuple[tuple[str, str], ...] = (), profile: str = "") -> None:
    """Runs the case in this process and prints its verdict; ends the program with status 1 when it failed.

    settings: options of the device, as text. profile: the path of its profile.
    """
    options = Options(device, settings=settings, profile=profile)
    target = open_target(options)
    result = judge_case(find_case(target, case_id, options), target)
    print(f"{result.verdict}: {result.message or case_id}")
    if result.verdict == "fail":
        raise SystemExit(1)
