"""The passes of the core, which join as those of plugins do."""

from __future__ import annotations

from timberframe_core.compiler.passes.cover import COVER
from timberframe_core.compiler.passes.fold import FOLD
from timberframe_core.compiler.passes.fuse import FUSE
from timberframe_core.compiler.passes.merge import MERGE
from timberframe_core.compiler.passes.simplify import SIMPLIFY
from timberframe_core.plugin import loader
from timberframe_ops.passes.dense_lists import DENSE_LISTS
from timberframe_ops.passes.functionalize import FUNCTIONALIZE
from timberframe_ops.passes.hoist import HOIST
from timberframe_ops.passes.narrow import NARROW
from timberframe_ops.passes.norms import NORMS
from timberframe_ops.passes.pads import PADS
from timberframe_ops.passes.powers import POWERS
from timberframe_ops.passes.sink import SINK

loader.registry.passes.register(
    (FUNCTIONALIZE, DENSE_LISTS, SIMPLIFY, MERGE, FOLD, POWERS, PADS, NORMS, HOIST, SINK, NARROW, COVER, FUSE)
)
