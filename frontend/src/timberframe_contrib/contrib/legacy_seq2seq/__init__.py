"""`tf.contrib.legacy_seq2seq`: decoders, networks and losses of lists of steps."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.contrib.legacy_seq2seq.decoders import attention_decoder as attention_decoder
from timberframe_contrib.contrib.legacy_seq2seq.decoders import (
    embedding_attention_decoder as embedding_attention_decoder,
)
from timberframe_contrib.contrib.legacy_seq2seq.decoders import embedding_rnn_decoder as embedding_rnn_decoder
from timberframe_contrib.contrib.legacy_seq2seq.decoders import rnn_decoder as rnn_decoder
from timberframe_contrib.contrib.legacy_seq2seq.losses import sequence_loss as sequence_loss
from timberframe_contrib.contrib.legacy_seq2seq.losses import sequence_loss_by_example as sequence_loss_by_example
from timberframe_contrib.contrib.legacy_seq2seq.networks import basic_rnn_seq2seq as basic_rnn_seq2seq
from timberframe_contrib.contrib.legacy_seq2seq.networks import (
    embedding_attention_seq2seq as embedding_attention_seq2seq,
)
from timberframe_contrib.contrib.legacy_seq2seq.networks import embedding_rnn_seq2seq as embedding_rnn_seq2seq
from timberframe_contrib.contrib.legacy_seq2seq.networks import embedding_tied_rnn_seq2seq as embedding_tied_rnn_seq2seq
from timberframe_contrib.contrib.legacy_seq2seq.networks import model_with_buckets as model_with_buckets
from timberframe_contrib.contrib.legacy_seq2seq.networks import one2many_rnn_seq2seq as one2many_rnn_seq2seq
from timberframe_contrib.contrib.legacy_seq2seq.networks import tied_rnn_seq2seq as tied_rnn_seq2seq

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
