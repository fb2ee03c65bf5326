"""What the broken asynchronous plugins share: a device whose queue works a while after the call, and is right."""

from timberframe_sdk.testing.asynchronous_device import AsynchronousDevice


class LateDevice(AsynchronousDevice):
    """An asynchronous device named after the plugin."""

    def __init__(self, type):
        super().__init__(0, 1 << 30)
        self.type, self.priority, self.spec = type, 0, f"/device:{type}:0"
