"""`tf.version`: which version this is."""

from timberframe import GIT_VERSION as GIT_VERSION
from timberframe import VERSION as VERSION
