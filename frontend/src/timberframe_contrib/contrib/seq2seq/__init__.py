"""`tf.contrib.seq2seq`: decoders, what feeds them, attention, beam search, and the loss of sequences."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.contrib.seq2seq.attention_wrapper import AttentionWrapper as AttentionWrapper
from timberframe_contrib.contrib.seq2seq.attention_wrapper import AttentionWrapperState as AttentionWrapperState
from timberframe_contrib.contrib.seq2seq.basic_decoder import BasicDecoder as BasicDecoder
from timberframe_contrib.contrib.seq2seq.basic_decoder import BasicDecoderOutput as BasicDecoderOutput
from timberframe_contrib.contrib.seq2seq.beam_search import BeamSearchDecoder as BeamSearchDecoder
from timberframe_contrib.contrib.seq2seq.beam_search import BeamSearchDecoderOutput as BeamSearchDecoderOutput
from timberframe_contrib.contrib.seq2seq.beam_search import BeamSearchDecoderState as BeamSearchDecoderState
from timberframe_contrib.contrib.seq2seq.beam_search import FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput
from timberframe_contrib.contrib.seq2seq.beams import gather_tree as gather_tree
from timberframe_contrib.contrib.seq2seq.beams import gather_tree_from_array as gather_tree_from_array
from timberframe_contrib.contrib.seq2seq.beams import tile_batch as tile_batch
from timberframe_contrib.contrib.seq2seq.decoding import Decoder as Decoder
from timberframe_contrib.contrib.seq2seq.decoding import dynamic_decode as dynamic_decode
from timberframe_contrib.contrib.seq2seq.helpers import CustomHelper as CustomHelper
from timberframe_contrib.contrib.seq2seq.helpers import GreedyEmbeddingHelper as GreedyEmbeddingHelper
from timberframe_contrib.contrib.seq2seq.helpers import Helper as Helper
from timberframe_contrib.contrib.seq2seq.helpers import InferenceHelper as InferenceHelper
from timberframe_contrib.contrib.seq2seq.helpers import SampleEmbeddingHelper as SampleEmbeddingHelper
from timberframe_contrib.contrib.seq2seq.helpers import TrainingHelper as TrainingHelper
from timberframe_contrib.contrib.seq2seq.loss import sequence_loss as sequence_loss
from timberframe_contrib.contrib.seq2seq.mechanisms import AttentionMechanism as AttentionMechanism
from timberframe_contrib.contrib.seq2seq.mechanisms import BahdanauAttention as BahdanauAttention
from timberframe_contrib.contrib.seq2seq.mechanisms import LuongAttention as LuongAttention
from timberframe_contrib.contrib.seq2seq.mechanisms import hardmax as hardmax
from timberframe_contrib.contrib.seq2seq.monotonic import BahdanauMonotonicAttention as BahdanauMonotonicAttention
from timberframe_contrib.contrib.seq2seq.monotonic import LuongMonotonicAttention as LuongMonotonicAttention
from timberframe_contrib.contrib.seq2seq.monotonic import monotonic_attention as monotonic_attention
from timberframe_contrib.contrib.seq2seq.monotonic import safe_cumprod as safe_cumprod
from timberframe_contrib.contrib.seq2seq.scheduled import (
    ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper,
)
from timberframe_contrib.contrib.seq2seq.scheduled import ScheduledOutputTrainingHelper as ScheduledOutputTrainingHelper

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this package
