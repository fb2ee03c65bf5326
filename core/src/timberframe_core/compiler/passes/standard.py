"""The passes of the core, which join as those of plugins do."""

from __future__ import annotations

from timberframe_core.compiler.passes.cover import COVER
from timberframe_core.compiler.passes.dense_lists import DENSE_LISTS
from timberframe_core.compiler.passes.fold import FOLD
from timberframe_core.compiler.passes.functionalize import FUNCTIONALIZE
from timberframe_core.compiler.passes.fuse import FUSE
from timberframe_core.compiler.passes.hoist import HOIST
from timberframe_core.compiler.passes.merge import MERGE
from timberframe_core.compiler.passes.narrow import NARROW
from timberframe_core.compiler.passes.norms import NORMS
from timberframe_core.compiler.passes.pads import PADS
from timberframe_core.compiler.passes.powers import POWERS
from timberframe_core.compiler.passes.simplify import SIMPLIFY
from timberframe_core.compiler.passes.sink import SINK
from timberframe_core.plugin import loader

loader.registry.passes.register(
    (FUNCTIONALIZE, DENSE_LISTS, SIMPLIFY, MERGE, FOLD, POWERS, PADS, NORMS, HOIST, SINK, NARROW, COVER, FUSE)
)
