"""The whole of `timberframe`, as `import timberframe.compat.v1 as tf`."""

import sys

import timberframe

sys.modules[__name__] = timberframe
