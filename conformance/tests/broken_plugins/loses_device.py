"""Its kernel of Square loses the device: from then on every kernel is refused."""

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk


class LostDevice(BrokenDevice):
    lost = ""

    def check(self):
        if self.lost:
            raise sdk.UnavailableError(f"{self.spec}: {self.lost}")


def negative(node):
    right = kernels("")[1].build(node)

    def launch(x, out):
        node.device.check()
        right(x, out)

    return launch


def square(node):
    def launch(x, out):
        node.device.lost = node.device.lost or "the board is lost to a loose contact"
        node.device.check()

    return launch


hooks(globals(), LostDevice("LOSES_DEVICE"), kernels("LOSES_DEVICE", Square=square, Neg=negative))
