"""All mutants."""

from timberframe_conformance.mutants import collectives as collectives
from timberframe_conformance.mutants import decompositions as decompositions
from timberframe_conformance.mutants import gradients as gradients
from timberframe_conformance.mutants import host_ops as host_ops
from timberframe_conformance.mutants import memory as memory
from timberframe_conformance.mutants import movement as movement
from timberframe_conformance.mutants import passes as passes
from timberframe_conformance.mutants import patterns as patterns
from timberframe_conformance.mutants import pointwise as pointwise
from timberframe_conformance.mutants import prepared as prepared
from timberframe_conformance.mutants import random as random
from timberframe_conformance.mutants import reductions as reductions
from timberframe_conformance.mutants import resources as resources
from timberframe_conformance.mutants import shapes as shapes
from timberframe_conformance.mutants import sizes as sizes
from timberframe_conformance.mutants import targets as targets
from timberframe_conformance.mutants import training as training
from timberframe_conformance.mutants.base import MUTANTS as MUTANTS
from timberframe_conformance.mutants.strangers import catalogue as catalogue
