"""Recurrent networks: the cells of `tf.nn.rnn_cell`, and what runs them along time (`tf.nn.dynamic_rnn`, ...)."""

from timberframe.boundary import guard
from timberframe.recurrent import dynamic, static

guard([dynamic, static], "tf.nn")  # here, since `import timberframe` does not load this package
