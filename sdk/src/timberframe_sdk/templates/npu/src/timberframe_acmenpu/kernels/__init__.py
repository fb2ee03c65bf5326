"""The kernels of ACMENPU: of an MLP, of LeNet, and what MobileNets, transformers and status words want first.

A builder is called once for each combination of shapes, and returns a function of the inputs' and outputs' elements,
which the device's queue calls in every run.
"""

from timberframe_acmenpu.kernels import elementwise, images, matrices, rows

KERNELS = [*elementwise.KERNELS, *matrices.KERNELS, *images.KERNELS, *rows.KERNELS]
