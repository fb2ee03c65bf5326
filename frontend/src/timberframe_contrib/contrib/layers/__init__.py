"""`tf.contrib.layers`: layers as functions that take `scope`, with variables named weights and biases.

The functions take defaults from `tf.contrib.framework.arg_scope`.
"""

import sys

from timberframe.boundary import guard
from timberframe_contrib.contrib.layers.convolutional import conv1d as conv1d
from timberframe_contrib.contrib.layers.convolutional import conv2d as conv2d
from timberframe_contrib.contrib.layers.convolutional import conv2d_transpose as conv2d_transpose
from timberframe_contrib.contrib.layers.convolutional import conv3d as conv3d
from timberframe_contrib.contrib.layers.convolutional import conv3d_transpose as conv3d_transpose
from timberframe_contrib.contrib.layers.convolutional import convolution as convolution
from timberframe_contrib.contrib.layers.convolutional import convolution1d as convolution1d
from timberframe_contrib.contrib.layers.convolutional import convolution2d as convolution2d
from timberframe_contrib.contrib.layers.convolutional import convolution2d_transpose as convolution2d_transpose
from timberframe_contrib.contrib.layers.convolutional import convolution3d as convolution3d
from timberframe_contrib.contrib.layers.convolutional import convolution3d_transpose as convolution3d_transpose
from timberframe_contrib.contrib.layers.dense import bias_add as bias_add
from timberframe_contrib.contrib.layers.dense import elu as elu
from timberframe_contrib.contrib.layers.dense import fully_connected as fully_connected
from timberframe_contrib.contrib.layers.dense import legacy_fully_connected as legacy_fully_connected
from timberframe_contrib.contrib.layers.dense import legacy_linear as legacy_linear
from timberframe_contrib.contrib.layers.dense import legacy_relu as legacy_relu
from timberframe_contrib.contrib.layers.dense import linear as linear
from timberframe_contrib.contrib.layers.dense import relu as relu
from timberframe_contrib.contrib.layers.dense import relu6 as relu6
from timberframe_contrib.contrib.layers.depthwise import conv2d_in_plane as conv2d_in_plane
from timberframe_contrib.contrib.layers.depthwise import convolution2d_in_plane as convolution2d_in_plane
from timberframe_contrib.contrib.layers.depthwise import separable_conv2d as separable_conv2d
from timberframe_contrib.contrib.layers.depthwise import separable_convolution2d as separable_convolution2d
from timberframe_contrib.contrib.layers.embeddings import bow_encoder as bow_encoder
from timberframe_contrib.contrib.layers.embeddings import embed_sequence as embed_sequence
from timberframe_contrib.contrib.layers.embeddings import embedding_lookup_unique as embedding_lookup_unique
from timberframe_contrib.contrib.layers.embeddings import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from timberframe_contrib.contrib.layers.keypoints import spatial_softmax as spatial_softmax
from timberframe_contrib.contrib.layers.normalization import batch_norm as batch_norm
from timberframe_contrib.contrib.layers.normalization import group_norm as group_norm
from timberframe_contrib.contrib.layers.normalization import instance_norm as instance_norm
from timberframe_contrib.contrib.layers.normalization import layer_norm as layer_norm
from timberframe_contrib.contrib.layers.normalization import poincare_normalize as poincare_normalize
from timberframe_contrib.contrib.layers.normalization import unit_norm as unit_norm
from timberframe_contrib.contrib.layers.optimization import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from timberframe_contrib.contrib.layers.optimization import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from timberframe_contrib.contrib.layers.optimization import optimize_loss as optimize_loss
from timberframe_contrib.contrib.layers.pooling import avg_pool2d as avg_pool2d
from timberframe_contrib.contrib.layers.pooling import avg_pool3d as avg_pool3d
from timberframe_contrib.contrib.layers.pooling import max_pool2d as max_pool2d
from timberframe_contrib.contrib.layers.pooling import max_pool3d as max_pool3d
from timberframe_contrib.contrib.layers.repetition import repeat as repeat
from timberframe_contrib.contrib.layers.repetition import stack as stack
from timberframe_contrib.contrib.layers.shaping import dense_to_sparse as dense_to_sparse
from timberframe_contrib.contrib.layers.shaping import dropout as dropout
from timberframe_contrib.contrib.layers.shaping import flatten as flatten
from timberframe_contrib.contrib.layers.shaping import images_to_sequence as images_to_sequence
from timberframe_contrib.contrib.layers.shaping import inner_flatten as inner_flatten
from timberframe_contrib.contrib.layers.shaping import maxout as maxout
from timberframe_contrib.contrib.layers.shaping import one_hot_encoding as one_hot_encoding
from timberframe_contrib.contrib.layers.shaping import sequence_to_images as sequence_to_images
from timberframe_contrib.contrib.layers.shaping import softmax as softmax
from timberframe_contrib.contrib.layers.summaries import summarize_activation as summarize_activation
from timberframe_contrib.contrib.layers.summaries import summarize_activations as summarize_activations
from timberframe_contrib.contrib.layers.summaries import summarize_collection as summarize_collection
from timberframe_contrib.contrib.layers.summaries import summarize_tensor as summarize_tensor
from timberframe_contrib.contrib.layers.summaries import summarize_tensors as summarize_tensors
from timberframe_contrib.contrib.layers.weights import apply_regularization as apply_regularization
from timberframe_contrib.contrib.layers.weights import l1_l2_regularizer as l1_l2_regularizer
from timberframe_contrib.contrib.layers.weights import l1_regularizer as l1_regularizer
from timberframe_contrib.contrib.layers.weights import l2_regularizer as l2_regularizer
from timberframe_contrib.contrib.layers.weights import sum_regularizer as sum_regularizer
from timberframe_contrib.contrib.layers.weights import variance_scaling_initializer as variance_scaling_initializer
from timberframe_contrib.contrib.layers.weights import xavier_initializer as xavier_initializer
from timberframe_contrib.contrib.layers.weights import xavier_initializer_conv2d as xavier_initializer_conv2d

__all__ = [
    "OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "apply_regularization", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bias_add", "bow_encoder", "conv1d", "conv2d", "conv2d_in_plane", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "convolution", "convolution1d", "convolution2d", "convolution2d_in_plane",
    "convolution2d_transpose", "convolution3d", "convolution3d_transpose", "dense_to_sparse", "dropout", "elu",
    "embed_sequence", "embedding_lookup_unique", "flatten", "fully_connected", "group_norm", "images_to_sequence",
    "inner_flatten", "instance_norm", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer", "layer_norm",
    "legacy_fully_connected", "legacy_linear", "legacy_relu", "linear", "max_pool2d", "max_pool3d", "maxout",
    "one_hot_encoding", "optimize_loss", "poincare_normalize", "relu", "relu6", "repeat",
    "safe_embedding_lookup_sparse", "separable_conv2d", "separable_convolution2d", "sequence_to_images", "softmax",
    "spatial_softmax", "stack", "sum_regularizer", "summarize_activation", "summarize_activations",
    "summarize_collection", "summarize_tensor", "summarize_tensors", "unit_norm", "variance_scaling_initializer",
    "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
