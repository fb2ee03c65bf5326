"""Inception networks: version 3."""

from timberframe_contrib.contrib.slim_nets.inception_v3 import inception_v3 as inception_v3
from timberframe_contrib.contrib.slim_nets.inception_v3 import inception_v3_arg_scope as inception_v3_arg_scope
from timberframe_contrib.contrib.slim_nets.inception_v3 import inception_v3_base as inception_v3_base
