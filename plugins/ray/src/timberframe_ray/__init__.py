"""Timberframe over many machines, on Ray: workers are actors, and sessions on ``ray:<cluster>`` have their devices."""

from timberframe_ray.cluster import Cluster as Cluster
from timberframe_ray.cluster import local_cluster as local_cluster
from timberframe_ray.collectives import DistributedOptimizer as DistributedOptimizer
from timberframe_ray.collectives import Group as Group
from timberframe_ray.collectives import all_gather as all_gather
from timberframe_ray.collectives import all_reduce as all_reduce
from timberframe_ray.collectives import broadcast as broadcast
from timberframe_ray.collectives import broadcast_variables as broadcast_variables
from timberframe_ray.collectives import group as group
from timberframe_ray.collectives import join as join
from timberframe_ray.collectives import leave as leave
from timberframe_ray.collectives import reduce_scatter as reduce_scatter
from timberframe_ray.fit import Result as Result
from timberframe_ray.fit import fit as fit
from timberframe_ray.pipeline import pipeline as pipeline
from timberframe_sdk import add_library_folder as _add_library_folder

_add_library_folder(__file__)
