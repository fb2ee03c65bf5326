"""What processes that run the same program compute together: sums over all of them, and copies to all of them."""

from timberframe_ray.collectives.group import Group as Group
from timberframe_ray.collectives.group import group as group
from timberframe_ray.collectives.group import join as join
from timberframe_ray.collectives.group import leave as leave
from timberframe_ray.collectives.ops import all_gather as all_gather
from timberframe_ray.collectives.ops import all_reduce as all_reduce
from timberframe_ray.collectives.ops import broadcast as broadcast
from timberframe_ray.collectives.ops import reduce_scatter as reduce_scatter
from timberframe_ray.collectives.optimizer import DistributedOptimizer as DistributedOptimizer
from timberframe_ray.collectives.optimizer import broadcast_variables as broadcast_variables
