"""`tf.queue`: queues, by the names that they have in `tf`, too."""

from timberframe import FIFOQueue as FIFOQueue
from timberframe import PaddingFIFOQueue as PaddingFIFOQueue
from timberframe import PriorityQueue as PriorityQueue
from timberframe import QueueBase as QueueBase
from timberframe import RandomShuffleQueue as RandomShuffleQueue
