"""Fused nodes, for devices that run chains of elementwise nodes as one."""

from timberframe_core.plugin.fusion import FUSED as FUSED
from timberframe_core.plugin.fusion import Dim as Dim
from timberframe_core.plugin.fusion import Fusion as Fusion
from timberframe_core.plugin.fusion import merged_dims as merged_dims
from timberframe_core.plugin.fusion import reduction as reduction
