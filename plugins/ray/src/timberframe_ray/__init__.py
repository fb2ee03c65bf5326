"""Timberframe over many machines, on Ray: workers are actors, and sessions on ``ray:<cluster>`` have their devices."""

from timberframe_ray.cluster import Cluster as Cluster
from timberframe_ray.cluster import local_cluster as local_cluster
