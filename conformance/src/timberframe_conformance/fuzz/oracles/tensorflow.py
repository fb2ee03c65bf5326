"""The same graphs in TensorFlow, both ways: TensorFlow runs what we wrote, and we run what it wrote of that.

Importing this module needs tensorflow, and adds the oracle `tensorflow`. `data/tensorflow_differences.toml` lists where
both differ for good reason; results of programs with such nodes are not compared.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # TensorFlow's own kernels: oneDNN's give 0 for e^-inf/e^inf
import tensorflow.compat.v1 as theirs  # type: ignore[import-not-found,import-untyped,unused-ignore]  # only in the peers' environment

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.differences import UNDEFINED, copy_inputs, incomparable, is_explained
from timberframe_conformance.fuzz.expected import evaluate, expect
from timberframe_conformance.fuzz.oracles.graphs import carried
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_core.ops.definition.formats import FORMATS

MORE = 64.0
"""TensorFlow's allowed error as a multiple of our devices', since its accuracy is not declared."""


PREAMBLE = re.compile(r"Graph execution error: |Detected at node .*? Node: ")
"""The part of a message that says where a node was defined; it is the same for every error."""

NO_KERNEL = re.compile(
    r"No OpKernel was registered|UnimplementedError|No registered|has constraint on attr|on device type CPU"
    r"|\bonly supports?|\bnot (yet |currently )?support|currently supported"
)
"""TensorFlow's messages for ops that it cannot run on a CPU in these dtypes, formats or sizes."""


@oracle("tensorflow")
def tensorflow(s: Subject) -> int:
    """TensorFlow's results for the graph that we wrote are the true ones, and ours for the one that it wrote back."""
    if any(t.dtype.name not in FORMATS and t.dtype.numpy.kind not in "biuO" for t in s.built.fetches):
        return 0
    if any(step.kind == "host" for step in s.program.all_steps()):  # the function is not in the message
        return 0

    @functools.cache
    def value(tensor: Any) -> Any:
        return evaluate([tensor], s.built.feeds, s.built.initializers)[0]

    message = s.built.graph.as_graph_def()
    copy_inputs(message)
    if is_explained(s.built.graph, UNDEFINED, value):
        return 0
    try:
        back, got = _run(s, message.SerializeToString())
    except (theirs.errors.OpError, ValueError, TypeError, NotImplementedError) as e:
        text = f"{type(e).__name__}: {PREAMBLE.sub('', ' '.join(str(e).split()))}"
        if is_explained(s.built.graph, text, value) or NO_KERNEL.search(text):
            return 0
        raise CaseFailedError(f"TensorFlow raises {text[:600]}") from e
    imported = carried(s.built, type(message).FromString(back))
    with s.session(imported) as session:
        count = s.check_same(s.run(session, built=imported), "the graph that TensorFlow read and wrote again")
    if is_explained(s.built.graph, "", value):
        return count
    built = s.built
    expected = expect(built.fetches, built.feeds, built.initializers, flush=True)  # TensorFlow flushes subnormals
    skipped = incomparable(built.graph, value)
    for i, (found, truth) in enumerate(zip(got, expected, strict=True)):
        if built.fetches[i] in skipped:
            continue
        wrong = "" if truth is None else truth.mismatch(found, MORE)
        if wrong:
            what = f"TensorFlow's result {i}, of {built.fetches[i].op.type}"
            raise CaseFailedError(f"{what}: {wrong}; ours is {np.asarray(s.first[i]).tolist()!r:.200}")
    return 2 * count


def _run(s: Subject, text: bytes) -> tuple[bytes, list[Any]]:
    """Returns the graph as TensorFlow writes it again, and its results.

    Nodes run as they are: optimizers of graphs have defects of their own, such as an Add in place of a FusedBatchNormV3
    whose other outputs are used. The feeds are copies: InplaceAdd writes into the memory of what is fed.
    """
    with theirs.Graph().as_default() as graph:
        theirs.import_graph_def(theirs.GraphDef.FromString(text), name="")
        back: bytes = graph.as_graph_def(add_shapes=True).SerializeToString()
        config = theirs.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with theirs.Session(graph=graph, config=config) as session:
            if s.built.initializers:
                session.run([op.name for op in s.built.initializers])
            feeds = {t.name: np.array(x) for t, x in s.built.feeds.items()}
            return back, session.run([t.name for t in s.built.fetches], feeds)
