"""`tf.manip`: what moves the elements of tensors, by names that TensorFlow 1 had for it."""

from timberframe import batch_to_space_nd as batch_to_space_nd
from timberframe import gather_nd as gather_nd
from timberframe import reshape as reshape
from timberframe import reverse as reverse
from timberframe import roll as roll
from timberframe import scatter_nd as scatter_nd
from timberframe import space_to_batch_nd as space_to_batch_nd
from timberframe import tile as tile
