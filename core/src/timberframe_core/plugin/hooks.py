"""The hooks that a plugin may implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import Device, KernelDef
from timberframe_core.plugin.passes import Pass

hookspec = pluggy.HookspecMarker("timberframe")
hookimpl = pluggy.HookimplMarker("timberframe")


class HookSpecs:
    """What plugins are asked for. Each plugin is asked by itself, so that one that fails leaves the others working."""

    @hookspec
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:  # type: ignore[empty-body]  # a spec has no body
        """The devices that there are. config: the SessionConfig's options for the plugin's device types.

        UnavailableError says what is missing where there are none: no fault of the installation, and shown with it.
        """

    @hookspec
    def timberframe_kernels(self) -> list[KernelDef]:  # type: ignore[empty-body]  # a spec has no body
        """The kernels, for devices of this plugin or of another one."""

    @hookspec
    def timberframe_generated_kernels(self, op: OpDef) -> list[KernelDef]:  # type: ignore[empty-body]  # a spec has no body
        """Kernels that the plugin can make for an op, such as from its source.

        Asked once for each op, when it is first looked for: so an op that is defined later than the plugin was loaded
        runs, too. They stand where the plugin itself has registered no kernel of the op for the device. Any registered
        kernel wins over these; where one of another plugin does not take a node, they may.
        """

    @hookspec
    def timberframe_passes(self) -> list[Pass]:  # type: ignore[empty-body]  # a spec has no body
        """Rewrites that join the core's own; they run in the sessions that use the plugin, those of a package that
        brings all its ops in every session.
        """
