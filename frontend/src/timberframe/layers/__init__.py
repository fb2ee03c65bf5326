"""`tf.layers`: parts of networks that make their variables, as classes and as functions.

Names of variables and scopes, and all defaults, are TensorFlow 1's, so that its checkpoints fit.
"""

import sys

from timberframe.boundary import guard
from timberframe.layers.base import InputSpec as InputSpec
from timberframe.layers.base import Layer as Layer
from timberframe.layers.convolutional import Conv1D as Conv1D
from timberframe.layers.convolutional import Conv2D as Conv2D
from timberframe.layers.convolutional import Conv3D as Conv3D
from timberframe.layers.convolutional import conv1d as conv1d
from timberframe.layers.convolutional import conv2d as conv2d
from timberframe.layers.convolutional import conv3d as conv3d
from timberframe.layers.core import Dense as Dense
from timberframe.layers.core import Dropout as Dropout
from timberframe.layers.core import Flatten as Flatten
from timberframe.layers.core import dense as dense
from timberframe.layers.core import dropout as dropout
from timberframe.layers.core import flatten as flatten
from timberframe.layers.normalization import BatchNormalization as BatchNormalization
from timberframe.layers.normalization import batch_normalization as batch_normalization
from timberframe.layers.pooling import AveragePooling1D as AveragePooling1D
from timberframe.layers.pooling import AveragePooling2D as AveragePooling2D
from timberframe.layers.pooling import AveragePooling3D as AveragePooling3D
from timberframe.layers.pooling import MaxPooling1D as MaxPooling1D
from timberframe.layers.pooling import MaxPooling2D as MaxPooling2D
from timberframe.layers.pooling import MaxPooling3D as MaxPooling3D
from timberframe.layers.pooling import average_pooling1d as average_pooling1d
from timberframe.layers.pooling import average_pooling2d as average_pooling2d
from timberframe.layers.pooling import average_pooling3d as average_pooling3d
from timberframe.layers.pooling import max_pooling1d as max_pooling1d
from timberframe.layers.pooling import max_pooling2d as max_pooling2d
from timberframe.layers.pooling import max_pooling3d as max_pooling3d
from timberframe.layers.separable import SeparableConv1D as SeparableConv1D
from timberframe.layers.separable import SeparableConv2D as SeparableConv2D
from timberframe.layers.separable import separable_conv1d as separable_conv1d
from timberframe.layers.separable import separable_conv2d as separable_conv2d
from timberframe.layers.transposed import Conv2DTranspose as Conv2DTranspose
from timberframe.layers.transposed import Conv3DTranspose as Conv3DTranspose
from timberframe.layers.transposed import conv2d_transpose as conv2d_transpose
from timberframe.layers.transposed import conv3d_transpose as conv3d_transpose

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
