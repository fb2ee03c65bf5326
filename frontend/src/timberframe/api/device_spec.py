"""`tf.DeviceSpec`: a device whose parts may be changed, as in TensorFlow 1."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.graph import device_spec


class DeviceSpec(device_spec.DeviceSpec):
    """A device, fully or partly named; None stands for a part that is left open.

    The parts are attributes that may be assigned. Do not change one that is a key of a dict or in a set.
    """

    job: str | None
    replica: int | None
    task: int | None
    device_type: str | None
    device_index: int | None

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.__post_init__()

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Returns the parts of a device string; raises InvalidArgumentError where it is malformed."""
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Takes all parts from a device string, and returns itself."""
        return self._take(device_spec.DeviceSpec.from_string(spec))

    def merge_from(self, dev: device_spec.DeviceSpec) -> None:
        """Takes every part that `dev` names from it."""
        instance(dev, device_spec.DeviceSpec, "DeviceSpec.merge_from: dev", "a tf.DeviceSpec")
        self._take(self.make_merged_spec(dev))

    def _take(self, other: device_spec.DeviceSpec) -> DeviceSpec:
        for field in fields(other):
            setattr(self, field.name, getattr(other, field.name))
        return self
