"""Bugs in how clusters, arrays and errors go to another process and come back."""

from __future__ import annotations

import time
from typing import Any

from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.errors import UnknownError
from timberframe_core.plugin import wire
from timberframe_sdk.remote.device import RemoteDevice
from timberframe_sdk.testing.process_target import link

SUITE = "targets"
LATE_SECONDS = 6


@seam_mutant(
    "wire-loses-attrs", "attrs that are true go to another process as false", SUITE, only=("/attrs", "runs", "model")
)
def _(r: Replacements, target: Any) -> None:
    def make(encode: Any) -> Any:
        return lambda value, kind: encode(False if value is True else value, kind)

    r.replace(wire, "encode_attr", make)


@seam_mutant("wire-loses-strides", "an array goes to another process in the order of its memory", SUITE, only=("runs",))
def _(r: Replacements, target: Any) -> None:
    def make(copy_in: Any) -> Any:
        return lambda self, x: copy_in(self, x.ravel("K").reshape(x.shape))

    r.replace(RemoteDevice, "copy_in", make)


@seam_mutant("wire-loses-classes", "each error of another process is an UnknownError", SUITE, only=("/error",))
def _(r: Replacements, target: Any) -> None:
    def raise_error(header: Any) -> None:
        if "error" in header:
            raise UnknownError(header["error"][1])

    r.replace(link, "raise_error", lambda _: raise_error)


@seam_mutant(
    "host-call-twice", "an op on a shared resource of another process is carried out twice", SUITE, only=("shared",)
)
def _(r: Replacements, target: Any) -> None:
    def make(host_call: Any) -> Any:
        def twice(self: Any, work: bytes, inputs: Any, cancel: Any) -> Any:
            if inputs:
                host_call(self, work, inputs, cancel)
            return host_call(self, work, inputs, cancel)

        return twice

    r.replace(RemoteDevice, "host_call", make)


@seam_mutant("end-seen-late", "that a process has ended is noticed after six seconds", SUITE, only=("process-ends",))
def _(r: Replacements, target: Any) -> None:
    def make(unavailable: Any) -> Any:
        def late(*given: Any) -> Any:
            time.sleep(LATE_SECONDS)
            return unavailable(*given)

        return late

    r.replace(link, "_unavailable", make)
