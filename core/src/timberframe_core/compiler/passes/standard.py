"""The passes of the frame, which join as those of plugins do."""

from __future__ import annotations

from timberframe_core.compiler.passes.cover import COVER
from timberframe_core.compiler.passes.fold import FOLD
from timberframe_core.compiler.passes.fuse import FUSE
from timberframe_core.compiler.passes.merge import MERGE
from timberframe_core.compiler.passes.simplify import SIMPLIFY
from timberframe_core.plugin import loader

loader.registry.passes.register((SIMPLIFY, MERGE, FOLD, COVER, FUSE))
