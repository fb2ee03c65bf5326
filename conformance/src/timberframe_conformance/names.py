"""Names of devices, as `--device=NAME` takes them: a device of this process, or the URL of a target.

|NAME|what is judged|
|-|-|
|`TYPE`, `TYPE:INDEX`|the device `/device:TYPE:INDEX` of this process, which a plugin brings; the index is else 0|
|`TYPE:CHOICE`|the device `/device:TYPE:0`, made for the hardware that the plugin knows by this name|
|`SCHEME:ADDRESS`|the first device of a target, such as `process:1`: a session on that URL is made|

The part before the first colon decides: it is a target's where a package, or the suite itself, has a target of that
scheme, else a type of devices. Type and index are as in `tf.device`, in either case; `/device:` may stand before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timberframe_core.plugin.contracts import Device
from timberframe_sdk import HARDWARE


@dataclass(frozen=True)
class DeviceName:
    """A device of this process: its type in capitals, its index, and the hardware that is chosen, if any."""

    type: str
    index: int = 0
    choice: str = ""

    @property
    def spec(self) -> str:
        """The device's name in graphs."""
        return f"/device:{self.type}:{self.index}"

    def config(self, settings: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Returns what sessions must have of SessionConfig for the device to exist. settings: options of its type."""
        options = dict(settings) | ({HARDWARE: self.choice} if self.choice else {})
        counts = {"device_count": {self.type: self.index + 1}} if self.index else {}
        return counts | ({"device_options": {self.type: options}} if options else {})


def read_name(text: str) -> DeviceName:
    """Returns the device that a text names which is no URL of a target."""
    kind, _, rest = text.removeprefix("/device:").partition(":")
    if rest and not rest.isdecimal():
        return DeviceName(kind.upper(), choice=rest)
    return DeviceName(kind.upper(), int(rest or 0))


def uses_choice(device: Device) -> bool:
    """Returns whether a device was made for chosen hardware: its details then say so, as of any option in use."""
    return HARDWARE in device.attributes.details


def no_choice(text: str, named: DeviceName) -> str:
    """Returns the message where devices of the type have no choice of hardware."""
    return (
        f"device '{text}': {named.type} devices have no choice of hardware; {named.type.lower()}:INDEX is required, "
        f"or a target with the scheme '{named.type.lower()}:'"
    )
