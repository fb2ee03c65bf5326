"""Derivatives of graphs, with those of loops, branches and calls, which the ops get from here."""

from timberframe_core.gradients.bodies import zeros_like
from timberframe_core.gradients.branches import branch_gradient, call_gradient
from timberframe_core.gradients.loops import loop_gradient
from timberframe_core.ops.definition.gradients import supplied

supplied.branch_gradient = branch_gradient
supplied.call_gradient = call_gradient
supplied.loop_gradient = loop_gradient
supplied.zeros_like = zeros_like
