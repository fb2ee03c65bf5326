"""The target "": the devices of this process, made by plugins."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.config import SessionConfig
from timberframe_core.errors import FailedPreconditionError
from timberframe_core.failures import describe_failure
from timberframe_core.plugin import loader
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.devices import devices_for
from timberframe_core.runtime.targets import register_target


class LocalTarget:
    """Devices of this process, which sessions of equal settings share. See `Target`."""

    def __init__(self, config: SessionConfig) -> None:
        self._config = config

    def devices(self) -> Sequence[Device]:
        found = devices_for(self._config)
        if not found:
            failed = loader.registry.failures(self._config.plugins)
            failures = "; ".join(f"{n}: {describe_failure(e)}" for n, e in failed.items())
            raise FailedPreconditionError(
                f"no device is available (plugins that failed: {failures or 'none'}); "
                "install a device plugin such as timberframe-cpu"
            )
        return found

    def close(self) -> None:
        """Leaves the devices for other sessions."""


class _LocalKind:
    def open(self, address: str, config: SessionConfig) -> LocalTarget:
        return LocalTarget(config)

    def reset(self, address: str, containers: Sequence[str]) -> None:
        """Does nothing: what sessions of this process keep ends with them."""


register_target("", _LocalKind())
