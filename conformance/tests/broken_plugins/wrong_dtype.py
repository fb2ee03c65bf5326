"""Gives results in float64, whatever dtype was planned."""

import numpy as np
from broken_device import BrokenDevice, hooks, kernels


class Widening:
    """An executable whose results are wider than planned."""

    def __init__(self, executable):
        self.executable, self.memory = executable, executable.memory

    def run(self, inputs, context):
        return [a.astype(np.float64) for a in self.executable.run(inputs, context)]


class WideDevice(BrokenDevice):
    def compile(self, cluster):
        return Widening(super().compile(cluster))


hooks(globals(), WideDevice("WRONG_DTYPE"), kernels("WRONG_DTYPE"))
