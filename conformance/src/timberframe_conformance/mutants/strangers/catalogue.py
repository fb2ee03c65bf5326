"""All mutants of strangers."""

from timberframe_conformance.mutants.strangers import compilers as compilers
from timberframe_conformance.mutants.strangers import convolutions as convolutions
from timberframe_conformance.mutants.strangers import drivers as drivers
from timberframe_conformance.mutants.strangers import movement as movement
from timberframe_conformance.mutants.strangers import opencl as opencl
from timberframe_conformance.mutants.strangers import patterns as patterns
from timberframe_conformance.mutants.strangers import pointwise as pointwise
from timberframe_conformance.mutants.strangers import products as products
from timberframe_conformance.mutants.strangers import reductions as reductions
