"""Its kernel of Square is wrong for int32: it computes in float32, which has fewer bits."""

import numpy as np
from broken_device import BrokenDevice, hooks, kernels


def square(node):
    if node.outputs[0].dtype != np.int32:
        return lambda x, out: np.square(x, out=out)
    return lambda x, out: np.copyto(out, np.square(x.astype(np.float32)), casting="unsafe")


hooks(globals(), BrokenDevice("WRONG_FOR_ONE_DTYPE"), kernels("WRONG_FOR_ONE_DTYPE", Square=square))
