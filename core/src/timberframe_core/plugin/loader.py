"""Finds plugins by their entry points and loads each by itself: one that fails leaves the others working."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pluggy

from timberframe_core import logging
from timberframe_core.errors import FailedPreconditionError, InternalError, InvalidArgumentError, UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_core.ops.definition import packages
from timberframe_core.plugin import host_ops
from timberframe_core.plugin.contracts import Device, KernelDef
from timberframe_core.plugin.device_defaults import complete
from timberframe_core.plugin.hooks import HookSpecs
from timberframe_core.plugin.kernels import KernelRegistry, of_plugins
from timberframe_core.plugin.passes import PassRegistry
from timberframe_core.plugin.version import CONTRACT

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

ENTRY_POINT_GROUP = "timberframe"
STAND_IN_GROUP = "timberframe.stand_ins"
"""Entry points of plugins that are used where no package brings one of the same name."""
SELECTION_VARIABLE = "TIMBERFRAME_PLUGINS"
_API_PACKAGE = "timberframe-sdk"


@dataclass
class Plugin:
    """An installed plugin: where it comes from, and what became of loading it."""

    name: str
    entry: EntryPoint | None
    distribution: str = ""
    version: str = ""
    contract: tuple[int, int] | None = None
    """The version of the contract that it is written for, None where its module names none or was not loaded."""
    manager: pluggy.PluginManager | None = None
    failure: BaseException | None = None
    kernels: int = 0
    stands_in: bool = False
    """Whether it is there only because no package brings a plugin of its name."""
    device_failures: list[BaseException] = field(default_factory=list)

    @property
    def loaded(self) -> bool:
        return self.manager is not None

    @property
    def package(self) -> str:
        """Name and version of the package that it comes from; empty where a program registered it."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def caution(self) -> str:
        """What its users and its author should know of it although it works; empty where there is nothing."""
        if self.loaded and self.stands_in:
            return f"is the stand-in of {self.package}, which is slow: install timberframe-{self.name} for a fast one"
        if not self.loaded or self.contract is not None:
            return ""
        return (
            "names no version of the contract, so that it is not checked whether it fits this timberframe-sdk; "
            f"timberframe_contract = {CONTRACT} in its module says that it is written for this one"
        )

    def fail(self, error: BaseException) -> None:
        """Leaves the plugin out, for this reason, which is logged; hardware that is absent is no fault and is not."""
        self.failure = error
        if not isinstance(error, UnavailableError):
            logging.warning("plugin '%s' is left out: %s", self.name, describe_failure(error))


class PluginRegistry:
    """All plugins of the process, and the kernels that they gave. Plugins load at first need, each only once."""

    def __init__(self) -> None:
        self.kernels = KernelRegistry()
        self.passes = PassRegistry()
        self.plugins: dict[str, Plugin] = {}
        self.generation = 0
        """Counts plugins that were added by hand, whose devices earlier sets lack, and calls of `close`."""
        self.watch: Callable[[Plugin | None], None] | None = None
        """Called with a plugin before code of it runs (its import, its hooks), and with None after: set to find
        out which plugin ends the process, or never returns."""
        self._parts: dict[frozenset[str], KernelRegistry] = {}
        """The kernels of those plugins that sessions without some of the others have."""
        self._devices: list[Device] = []
        self._lock = threading.RLock()
        self._discovered = False
        self._joined = False

    def discover(self) -> None:
        """Reads the metadata of installed packages; loads nothing."""
        from importlib.metadata import entry_points  # here, since it takes long to import

        with self._lock:
            if self._discovered:
                return
            self._discovered = True
            found = entry_points()
            plugins = sorted(found.select(group=ENTRY_POINT_GROUP), key=lambda e: e.name)
            for entry in (*plugins, *found.select(group=STAND_IN_GROUP)):
                if entry.name in self.plugins:
                    continue
                plugin = Plugin(entry.name, entry, stands_in=entry.group == STAND_IN_GROUP)
                if entry.dist is not None:
                    plugin.distribution, plugin.version = entry.dist.name, entry.dist.version
                self.plugins[entry.name] = plugin

    def load(self, selection: Iterable[str] | None = None) -> list[Plugin]:
        """Loads the selected plugins (see `selected`) and returns those that are usable."""
        self.discover()
        with self._lock, _without_collections():
            self._join_packages_of_ops()
            chosen = selected(self.plugins, selection)
            fresh = [(p, self._import(p)) for p in chosen if not p.loaded and p.failure is None]
            contributions = [(p, *self._contribution(p, module)) for p, module in fresh if module is not None]
            # A plugin with kernels for the device of its own name comes first, so that nobody can take them from it.
            contributions.sort(
                key=lambda contribution: not any(k.device == contribution[0].name.upper() for k in contribution[2])
            )
            for plugin, manager, kernels in contributions:
                self._accept(plugin, manager, kernels)
            return [p for p in chosen if p.loaded]

    def _join_packages_of_ops(self) -> None:
        """Registers the passes of packages that say they bring all their ops: every session has them, as it has the
        ops. Importing their modules registers the host ops.
        """
        if self._joined:
            return
        self._joined = True
        for entry in packages.whole_packages():
            if not packages.load_module(entry, entry.module):
                continue
            try:
                manager = _checked_hooks(import_module(entry.module), entry.module)
                self.passes.register([p for some in manager.hook.timberframe_passes() for p in some])
            except (Exception, SystemExit) as e:
                logging.warning("passes of %s are left out: %s", packages.described(entry), describe_failure(e))

    def kernels_of(self, plugins: Iterable[Plugin]) -> KernelRegistry:
        """Returns the kernels that sessions of these plugins have, whatever plugins other sessions have loaded."""
        names = frozenset(p.name for p in plugins)
        with self._lock:
            if names.issuperset(p.name for p in self.plugins.values() if p.failure is None):
                return self.kernels
            found = self._parts.get(names)
            if found is None:
                found = self._parts[names] = of_plugins(self.kernels, names)
            return found

    def add(self, name: str, module: object) -> Plugin:
        """Registers a plugin that is already in memory, for tests and for programs that bring their own device.

        Raises what is wrong with it.
        """
        with self._lock:
            plugin = self.plugins[name] = Plugin(name, None)
            self._accept(plugin, *self._contribution(plugin, module))
            if plugin.failure is not None:
                del self.plugins[name]
                raise plugin.failure
            self._changed()
            return plugin

    def remove(self, name: str) -> None:
        """Takes a plugin that `add` registered out again: sessions made from now on have no kernel or pass of it."""
        with self._lock:
            del self.plugins[name]
            self.kernels.unregister(name)
            self.passes.unregister(name)
            self._changed()

    def _changed(self) -> None:
        """Makes sessions that are made from now on look at the plugins again."""
        self._parts.clear()
        self.generation += 1

    def exclude(self, name: str, reason: str) -> None:
        """Leaves an installed plugin out, without importing it; messages give the reason as that of its failure."""
        self.discover()
        if name in self.plugins:
            self.plugins[name].failure = InternalError(reason)

    def failures(self, selection: Iterable[str] | None = ()) -> Mapping[str, BaseException]:
        """Returns the first exception of each plugin that cannot be used, and of devices that could not be made.

        selection: looks at these plugins alone, see `selected`; empty for all.
        """
        plugins = selected(self.plugins, selection)
        found = {p.name: p.failure for p in plugins if p.failure is not None}
        found.update({p.name: p.device_failures[0] for p in plugins if p.device_failures})
        return found

    def left_out(self, selection: Iterable[str] | None) -> Mapping[str, str]:
        """Returns names of the installed plugins that a selection leaves out, each with the setting that does so."""
        chosen = selected(self.plugins, selection)
        environment = f"{SELECTION_VARIABLE}={os.environ.get(SELECTION_VARIABLE, '')}"
        setting = environment if selection is None else "SessionConfig.plugins"
        return {name: setting for name, plugin in self.plugins.items() if plugin not in chosen}

    @contextmanager
    def _watched(self, plugin: Plugin) -> Iterator[None]:
        """Tells the watcher, where there is one, that the plugin's code runs in the block."""
        watch = self.watch
        if watch is None:
            yield
            return
        watch(plugin)
        try:
            yield
        finally:
            watch(None)

    def _import(self, plugin: Plugin) -> object | None:
        """Returns the plugin's module; None, with the exception kept, where it does not load."""
        assert plugin.entry is not None
        try:
            check_api(plugin.entry.dist)
            with self._watched(plugin), host_ops.registering(plugin.name):
                module: object = plugin.entry.load()
                return module
        except (Exception, SystemExit) as e:
            plugin.fail(e)
            return None

    def _contribution(self, plugin: Plugin, module: object) -> tuple[pluggy.PluginManager, list[KernelDef]]:
        """Returns the plugin's checked hooks and its kernels; no kernels, with the exception kept, where one raises."""
        try:
            plugin.contract = checked_contract(module, plugin.package)
            manager = _checked_hooks(module, plugin.name)
            with self._watched(plugin):
                return manager, [k for result in manager.hook.timberframe_kernels() for k in result]
        except (Exception, SystemExit) as e:
            plugin.fail(e)
            return pluggy.PluginManager("timberframe"), []

    def _accept(self, plugin: Plugin, manager: pluggy.PluginManager, kernels: list[KernelDef]) -> None:
        """Takes the plugin's kernels and passes together, or leaves it out."""
        if plugin.failure is not None:
            return
        try:
            passes = [p for some in manager.hook.timberframe_passes() for p in some]
            with self.passes.registered(passes, plugin.name):
                self.kernels.register(kernels, plugin.name)
        except (Exception, SystemExit) as e:
            plugin.fail(e)
            return
        plugin.manager, plugin.kernels = manager, len(kernels)
        if plugin.stands_in:
            logging.warning("plugin '%s' %s", plugin.name, plugin.caution)
        if manager.hook.timberframe_generated_kernels.get_hookimpls():
            hook = manager.hook.timberframe_generated_kernels
            self.kernels.add_generator(lambda op: [k for result in hook(op=op) for k in result], plugin.name)

    def make_devices(
        self, plugin: Plugin, config: Mapping[str, Any], kernels: KernelRegistry | None = None
    ) -> list[Device]:
        """Returns the plugin's devices; none where it raises, and its exception is kept. kernels:
        what they have, None for all.

        InvalidArgumentError is raised on: by it a plugin refuses the session's settings.
        """
        assert plugin.manager is not None
        try:
            with self._watched(plugin):
                devices = [d for result in plugin.manager.hook.timberframe_devices(config=config) for d in result]
            for device in devices:
                complete(device)
                device.kernels = self.kernels if kernels is None else kernels
        except InvalidArgumentError:
            raise  # the user's own settings are wrong: another device must not take over in silence
        except (Exception, SystemExit) as e:
            if not plugin.device_failures and not isinstance(e, UnavailableError):
                logging.warning("plugin '%s' has no device: %s", plugin.name, describe_failure(e))
            plugin.device_failures = [e]
            return []
        plugin.device_failures = []
        with self._lock:
            if not self._devices:
                atexit.register(self.close)
            self._devices.extend(devices)
        return devices

    def close(self) -> None:
        """Closes all devices, each once and those made last first; sessions made later get new ones.

        Called when the process ends. A device that fails to close does not stop the others.
        """
        with self._lock:
            devices, self._devices = self._devices, []
            self.generation += 1
        atexit.unregister(self.close)
        for device in reversed(devices):
            try:
                device.close()
            except Exception as e:
                logging.warning("device %s failed to close: %s: %s", device.spec, type(e).__name__, e)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Python looks for no garbage in the block: the modules and kernels of plugins stay for as long as the process."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _checked_hooks(module: object, name: str) -> pluggy.PluginManager:
    """Returns the hooks of a module; raises what is wrong with them."""
    manager = pluggy.PluginManager("timberframe")
    manager.add_hookspecs(HookSpecs)
    manager.register(module, name)
    manager.check_pending()
    _check_marks(manager, module)
    return manager


def _check_marks(manager: pluggy.PluginManager, module: object) -> None:
    """Raises InvalidArgumentError for a function that has a hook's name and lacks the mark: pluggy passes over it."""
    marked = {caller.name for caller in manager.get_hookcallers(module) or ()}
    for name in (n for n in vars(HookSpecs) if n.startswith("timberframe_")):
        if callable(getattr(module, name, None)) and name not in marked:
            raise InvalidArgumentError(f"function {name}: is not marked as a hook; put @hookimpl before it")


def selected(plugins: Mapping[str, Plugin], selection: Iterable[str] | None) -> list[Plugin]:
    """Returns the plugins that a selection such as ``cpu,-cuda`` means; None takes the environment's, or all.

    Names without a minus, if there are any, are the only ones used; names with one are left out.
    """
    if selection is None:
        selection = os.environ.get(SELECTION_VARIABLE, "").split(",")
    words = [w.strip() for w in selection if w.strip()]
    wanted = {w for w in words if not w.startswith("-")}
    unwanted = {w[1:] for w in words if w.startswith("-")}
    unknown = (wanted | unwanted) - plugins.keys()
    if unknown - unwanted:
        raise FailedPreconditionError(
            f"plugins {', '.join(sorted(unknown - unwanted))} are not installed; "
            f"installed are {', '.join(plugins) or 'none'}"
        )
    return [p for n, p in plugins.items() if (not wanted or n in wanted) and n not in unwanted]


def checked_contract(module: object, package: str = "") -> tuple[int, int] | None:
    """Returns the version of the contract that a plugin's module is written for, None where it names none.

    InternalError where that is another contract than this one: see CONTRACT. package: the plugin's name and version.
    """
    version: Any = getattr(module, "timberframe_contract", None)
    if version is None:
        return None
    if not (isinstance(version, tuple) and len(version) == 2 and all(type(n) is int for n in version)):
        raise InternalError(f"timberframe_contract is {version!r}; two integers, such as {CONTRACT}, are required")
    if version[0] != CONTRACT[0] or version[1] > CONTRACT[1]:
        older = version < CONTRACT
        which = f" ({'' if older else 'the plugin is '}{package})" if package else ""
        raise InternalError(
            f"it is written for version {version[0]}.{version[1]} of the contract; this {_API_PACKAGE} has "
            f"{CONTRACT[0]}.{CONTRACT[1]}: upgrade {'the plugin' if older else _API_PACKAGE}{which}"
        )
    return version


def check_api(distribution: Distribution | None) -> None:
    """Raises InternalError when the package requires another timberframe-sdk than the one installed."""
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import Requirement

    if distribution is None:
        return
    for text in distribution.requires or ():
        requirement = Requirement(text)
        if requirement.name.replace("_", "-").lower() != _API_PACKAGE:
            continue
        try:
            have = version(_API_PACKAGE)
        except PackageNotFoundError:
            have = ""
        if not have or not requirement.specifier.contains(have, prereleases=True):
            raise InternalError(
                f"{distribution.name} {distribution.version} needs {requirement}; installed is {have or 'none'}; "
                "install versions that fit together"
            )


registry = PluginRegistry()
"""The plugins of this process."""


def register_plugin(name: str, module: object) -> None:
    """Registers a plugin that is no installed package: a module, or an object, with the hooks.

    Sessions made from now on have its devices and kernels. Raises what is wrong with it.
    """
    registry.add(name, module)
