"""The versions of models that serve: from the folders on disk to a table of routes that is replaced at once."""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from timberframe_core.errors import FailedPreconditionError, NotFoundError, OpError, UnavailableError
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.codes import as_op_error
from timberframe_serving.metrics import Metrics
from timberframe_serving.models import LoadSettings
from timberframe_serving.repository import ModelSettings, fingerprint, versions_in
from timberframe_serving.servable import Servable

_log = logging.getLogger(__name__)
_MOST_REMEMBERED = 100


class State(enum.Enum):
    """The stage of a version's life."""

    ASPIRED = "aspired"
    LOADING = "loading"
    WARMING = "warming"
    AVAILABLE = "available"
    DRAINING = "draining"
    UNLOADED = "unloaded"

    @property
    def public(self) -> str:
        """The name that TensorFlow Serving's protocols have for it."""
        return _PUBLIC[self]


_PUBLIC = {
    State.ASPIRED: "START",
    State.LOADING: "LOADING",
    State.WARMING: "LOADING",
    State.AVAILABLE: "AVAILABLE",
    State.DRAINING: "UNLOADING",
    State.UNLOADED: "END",
}


@dataclass
class Version:
    """A version of a model. error: why it does not serve, or why it was not loaded."""

    number: int
    folder: Path
    state: State = State.ASPIRED
    error: OpError | None = None
    servable: Servable | None = None
    attempts: int = 0
    tried_at: float = 0.0
    files: int = 0
    """The fingerprint of the files that were tried."""


@dataclass
class Model:
    """A model with all its versions since the server began. stopped: unloaded by a request."""

    settings: ModelSettings
    versions: dict[int, Version] = field(default_factory=dict)
    stopped: bool = False
    last_good: int | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The lock of changes of versions: those of the watch and those of requests come one after the other."""


@dataclass(frozen=True)
class Route:
    """The versions of a model that answer: those that are available, and the number of the newest."""

    versions: Mapping[int, Servable]
    latest: int


@dataclass(frozen=True)
class ManagerSettings:
    """How versions change. load_first: the new version is loaded before the old one goes (availability-preserving).

    load_attempts: how often one that failed is tried in all while its files stay the same; seconds between tries, and
    between looks at the folders.
    """

    load_first: bool = True
    load_attempts: int = 6
    load_interval: float = 60.0
    poll_interval: float = 1.0
    load_threads: int = 2
    drain_seconds: float = 60.0


class Manager:
    """Keeps the wanted versions of models available. All its methods are called on one event loop."""

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        load: LoadSettings,
        batching: BatchingSettings,
        metrics: Metrics,
        settings: ManagerSettings,
    ) -> None:
        self.models = {name: Model(s) for name, s in models.items()}
        self.routes: Mapping[str, Route] = MappingProxyType({})
        self._load_settings, self._batching, self._metrics, self._settings = load, batching, metrics, settings
        self._loaders = ThreadPoolExecutor(settings.load_threads, "loader")
        self._drains: set[asyncio.Task[None]] = set()
        self._configuring = asyncio.Lock()
        """The lock of changes of the configuration: each unloads what it drops before the next begins."""

    # What serves

    def servable(self, name: str, version: int | None = None, label: str | None = None) -> Servable:
        """Returns what serves a model: a version, the one that a label names, or the newest.

        Raises NotFoundError where there is none of that name or number, FailedPreconditionError for a label whose
        version does not serve, UnavailableError where the model has no version that serves.
        """
        route = self.routes.get(name)
        if route is None:
            raise self._why_not(name)
        if label is not None:
            version = self._labelled(name, label)
        elif version == 0 and 0 not in route.versions:
            version = None  # clients of OpenVINO mean the newest by it
        found = route.versions.get(route.latest if version is None else version)
        if found is None:
            error = self._reason(name, version)
            kind = FailedPreconditionError if label is not None else NotFoundError
            raise kind(f"model '{name}': version {version} is not served{error}; {self._served(route)} are")
        return found

    def _labelled(self, name: str, label: str) -> int:
        labels = self.models[name].settings.labels
        if label not in labels:
            raise NotFoundError(f"model '{name}': has no label '{label[:200]}'; its labels are {sorted(labels)}")
        return labels[label]

    @staticmethod
    def _served(route: Route) -> str:
        return ", ".join(map(str, sorted(route.versions)))

    def _reason(self, name: str, version: int | None) -> str:
        known = self.models[name].versions.get(version or 0)
        return f" ({known.error})" if known and known.error else ""

    def _why_not(self, name: str) -> OpError:
        model = self.known(name)
        if model.stopped:
            return UnavailableError(f"model '{name}': was unloaded; load it to ask it")
        errors = [f"version {v.number}: {v.error}" for v in model.versions.values() if v.error]
        there = "; ".join(errors) or (
            "it is being loaded" if model.versions else f"no version in '{model.settings.base_path}'"
        )
        return UnavailableError(f"model '{name}': no version serves ({there})")

    @property
    def ready(self) -> bool:
        """Whether every model that is not unloaded has a version that serves."""
        return all(m.stopped or name in self.routes for name, m in self.models.items())

    # What is wanted

    async def watch(self) -> None:
        """Looks at the folders until it is cancelled; after an error, which the log has, too."""
        while True:
            try:
                await self.reconcile()
            except Exception:
                _log.exception("versions are not looked for")
            await asyncio.sleep(self._settings.poll_interval)

    async def reconcile(self) -> None:
        """Loads and unloads what the folders and the configuration ask for, and returns when that is done."""
        await asyncio.gather(*map(self._reconcile, self.models.values()))

    async def configure(self, models: Mapping[str, ModelSettings]) -> None:
        """Puts another configuration in place of the present one; models that it lacks are unloaded.

        A model whose folder changes is unloaded before it is loaded from there.
        """
        async with self._configuring:
            await self._configure(models)

    async def _configure(self, models: Mapping[str, ModelSettings]) -> None:
        for name, model in self.models.items():
            moved = name in models and models[name].base_path != model.settings.base_path
            model.stopped = model.stopped or moved or name not in models
        await self.reconcile()
        await self._drained()
        for name in [n for n in self.models if n not in models]:
            del self.models[name]
        for name, settings in models.items():
            known = self.models.setdefault(name, Model(settings))
            if known.settings.base_path != settings.base_path:
                known = self.models[name] = Model(settings)
            known.settings = settings
        await self.reconcile()
        self._publish()

    async def load(self, name: str) -> None:
        """Loads a model again that was unloaded, or tries once more what failed; raises why it does not serve then."""
        model = self.known(name)
        model.stopped = False
        for version in model.versions.values():
            version.attempts = 0
        await self._reconcile(model)
        if name not in self.routes:
            raise self._why_not(name)

    async def unload(self, name: str) -> None:
        """Unloads all versions of a model, until it is loaded again."""
        model = self.known(name)
        model.stopped = True
        await self._reconcile(model)

    def known(self, name: str) -> Model:
        """Returns a model of the configuration; raises NotFoundError where it has none of that name."""
        if name not in self.models:
            raise NotFoundError(f"model '{name[:200]}': is not known; {sorted(self.models)[:20]} are")
        return self.models[name]

    async def close(self) -> None:
        """Unloads everything, after the requests that are in it, or after `drain_seconds`."""
        for model in self.models.values():
            model.stopped = True
        await self.reconcile()
        if self._drains:
            await asyncio.wait(self._drains, timeout=self._settings.drain_seconds)
        self._loaders.shutdown(wait=False)

    # From what is there to what is wanted

    async def _reconcile(self, model: Model) -> None:
        async with model.lock:
            base = model.settings.base_path
            present = await asyncio.get_running_loop().run_in_executor(self._loaders, versions_in, base)
            _forget(model, present)
            if not present and not model.stopped:
                return  # a folder that vanishes takes no version that serves with it
            wanted = [] if model.stopped else model.settings.policy.wanted(list(present))
            due = [n for n in wanted if await self._due(model, n, present[n])]
            if not self._settings.load_first and due:
                self._unload(model, [n for n in self._available(model) if n not in wanted])
                await self._drained()
            for number in due:
                await self._load(model, model.versions[number])
            await self._fall_back(model, wanted, present)
            if not wanted or any(n in wanted for n in self._available(model)):
                self._unload(model, [n for n in self._available(model) if n not in wanted])

    def _available(self, model: Model) -> list[int]:
        return [v.number for v in model.versions.values() if v.state is State.AVAILABLE]

    async def _due(self, model: Model, number: int, folder: Path) -> bool:
        """Returns whether a version is to be loaded now: it is new, or failed and has changed or may be retried."""
        known = model.versions.get(number)
        if known is None or (known.state is State.UNLOADED and known.error is None) or known.folder != folder:
            if known is not None and known.state is not State.UNLOADED:
                return False
            model.versions[number] = Version(number, folder)
            return True
        if known.state is not State.UNLOADED:
            return False
        files = await asyncio.get_running_loop().run_in_executor(self._loaders, fingerprint, folder)
        if files != known.files:
            known.attempts = 0
        if not known.attempts:
            return True
        waited = time.monotonic() - known.tried_at >= self._settings.load_interval
        return waited and known.attempts < self._settings.load_attempts

    async def _fall_back(self, model: Model, wanted: list[int], present: Mapping[int, Path]) -> None:
        """Loads the best of the other versions where no wanted one serves and no other does.

        After a policy of `specific` versions that is the last one that served, else the newest ones on disk in turn.
        """
        if not wanted or self._available(model):
            return
        others = [n for n in sorted(present, reverse=True) if n not in wanted]
        if model.settings.policy.specific:
            others = [n for n in others if n == model.last_good]
        for number in others:
            if await self._due(model, number, present[number]):
                await self._load(model, model.versions[number])
            if self._available(model):
                return

    async def _load(self, model: Model, version: Version) -> None:
        version.attempts += 1
        version.tried_at = time.monotonic()
        version.error = None
        name, number = model.settings.name, version.number
        runtime = model.settings.runtime
        settings = self._load_settings.of(runtime)
        batching = replace(runtime.batching or self._batching, enabled=self._batching.enabled)
        run = asyncio.get_running_loop().run_in_executor
        begin = time.perf_counter()
        loaded = None
        try:
            version.files = await run(self._loaders, fingerprint, version.folder)
            version.state = State.LOADING
            loaded = await run(self._loaders, Servable.load, name, number, version.folder, settings)
            self._metrics.load_time.observe((time.perf_counter() - begin) * 1e6, str(version.folder))
            version.state = State.WARMING
            begin = time.perf_counter()
            await run(self._loaders, loaded.warm, batching)
            self._metrics.warmup_time.observe((time.perf_counter() - begin) * 1e6, str(version.folder), "success")
        except Exception as error:
            if loaded is not None:
                loaded.close()
            self._failed(model, version, as_op_error(error))
            return
        loaded.begin(batching, self._metrics)
        version.servable, version.state = loaded, State.AVAILABLE
        model.last_good = number
        self._metrics.loads.add(str(version.folder), "success")
        self._publish()
        self._metrics.swaps.add(name)
        _log.info("version serves", extra={"model": name, "version": number})

    def _failed(self, model: Model, version: Version, error: OpError) -> None:
        during = "warm-up" if version.state is State.WARMING else "load"
        version.state, version.error = State.UNLOADED, error
        self._metrics.loads.add(str(version.folder), "fail")
        _log.error(
            "version does not serve",
            extra={"model": model.settings.name, "version": version.number, "during": during, "error": str(error)},
        )

    def _unload(self, model: Model, numbers: Iterable[int]) -> None:
        gone = [model.versions[n] for n in numbers]
        for version in gone:
            version.state = State.DRAINING
        if gone:
            self._publish()
        for version in gone:
            task = asyncio.get_running_loop().create_task(self._drain(model.settings.name, version))
            self._drains.add(task)
            task.add_done_callback(self._drains.discard)

    async def _drain(self, name: str, version: Version) -> None:
        servable, version.servable = version.servable, None
        assert servable is not None
        try:
            await asyncio.wait_for(servable.drain(), self._settings.drain_seconds)
        except TimeoutError:
            _log.warning("requests are cut off", extra={"model": name, "version": version.number})
        await asyncio.get_running_loop().run_in_executor(self._loaders, servable.close)
        version.state = State.UNLOADED
        _log.info("version is unloaded", extra={"model": name, "version": version.number})

    async def _drained(self) -> None:
        if self._drains:
            await asyncio.wait(set(self._drains))

    def _publish(self) -> None:
        """Puts a new table of routes in place of the old one."""
        routes = {}
        for name, model in self.models.items():
            served = {n: v.servable for n, v in model.versions.items() if v.state is State.AVAILABLE and v.servable}
            if served:
                routes[name] = Route(MappingProxyType(served), max(served))
        self.routes = MappingProxyType(routes)


def _forget(model: Model, present: Mapping[int, Path]) -> None:
    """Drops all but the newest of the versions that are unloaded and no longer on disk."""
    gone = sorted(n for n, v in model.versions.items() if v.state is State.UNLOADED and n not in present)
    for number in gone[:-_MOST_REMEMBERED]:
        del model.versions[number]
