"""Hypotheses on why an output is wrong: the message of a failure names the one that fits.

A hypothesis is a function in one of the modules of this folder, which lists it in HYPOTHESES: it is called with the
`Wrong` output and yields words where it fits. `places` says which elements differ.
"""

from timberframe_conformance.hypotheses import arguments, arithmetic, geometry, memory
from timberframe_conformance.hypotheses.places import places
from timberframe_conformance.hypotheses.wrong import Wrong
from timberframe_conformance.truth.reference import quiet

HYPOTHESES = (
    arithmetic.flushed,
    *memory.HYPOTHESES,
    *geometry.HYPOTHESES,
    *arguments.HYPOTHESES,
    *arithmetic.HYPOTHESES,
)
"""In the order in which they are tried, the cheap and telling ones first."""


def explained(wrong: Wrong) -> str:
    """Returns what the message of a failure is to add: where the output differs, and the first hypothesis that fits."""
    with quiet():
        fitting = next((words for hypothesis in HYPOTHESES for words in hypothesis(wrong)), "")
    return "".join(f"; {words}" for words in (places(wrong), fitting) if words)
