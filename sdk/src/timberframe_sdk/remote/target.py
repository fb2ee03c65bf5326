"""What targets whose devices are in other processes have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from timberframe_core.config import SessionConfig as SessionConfig
from timberframe_core.plugin import loader
from timberframe_core.plugin.device_defaults import complete
from timberframe_core.plugin.state import Position
from timberframe_core.runtime.devices import devices_for
from timberframe_sdk.remote.device import Link, RemoteDevice


class ClosingLink(Link, Protocol):
    """A link that its target closes."""

    def close(self) -> None:
        """Makes the worker drop what it keeps for the session."""


class RemoteTarget:
    """See `Target`: the devices of these links, made by `make` of a link and a number, then those of this process."""

    def __init__(self, config: SessionConfig, make: Callable[[Any, int], RemoteDevice]) -> None:
        self.links: list[Any] = []
        self._config, self._make = config, make

    def connect(self, links: Sequence[Callable[[], ClosingLink]]) -> None:
        """Makes the links; where one cannot be made, those before it are closed."""
        try:
            for link in links:
                self.links.append(link())
        except BaseException:
            self.close()
            raise

    def devices(self) -> Sequence[Any]:
        found: list[Any] = [self._make(link, i) for link in self.links for i in range(len(link.devices))]
        found = [device for device in found if self._config.allows(device.name)]
        kernels = loader.registry.kernels_of(loader.registry.load(self._config.plugins))
        for device in found:
            complete(device)
            device.kernels = kernels
        return [*found, *devices_for(self._config)]

    def positions(self) -> dict[str, Position]:
        """Returns the positions of the session's random streams in all workers; a key names the stream and its task."""
        return {
            f"{key} in {_task(link)}": {part: np.array(values, dtype) for part, (dtype, values) in found.items()}
            for link in self.links
            for key, found in link.call(_task(link), "positions").items()
        }

    def set_positions(self, positions: Mapping[str, Position]) -> bool:
        """Makes the random streams of the workers that the session has go on from there; whether to compile again."""
        renew = False
        for link in self.links:
            end = f" in {_task(link)}"
            own = {
                key.removesuffix(end): {
                    part: [str(np.asarray(x).dtype), np.asarray(x).tolist()] for part, x in p.items()
                }
                for key, p in positions.items()
                if key.endswith(end)
            }
            renew |= bool(own and link.call(_task(link), "set_positions", positions=own))
        return renew

    def close(self) -> None:
        """Drops the session's tensors and executables in the workers."""
        for link in self.links:
            link.close()


def _task(link: Any) -> str:
    """Returns the name of a worker's task."""
    spec: str = link.devices[0][1]
    return spec.partition("/device:")[0]


def settings_of(config: SessionConfig) -> Mapping[str, Any]:
    """Returns the settings of a session, as plain values that other processes can be sent."""
    return {f.name: _plain(getattr(config, f.name)) for f in fields(config)}


def _plain(value: Any) -> Any:
    return {k: _plain(v) for k, v in value.items()} if hasattr(value, "items") else value
