"""One version of a model that serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from timberframe.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from timberframe_core.errors import InvalidArgumentError
from timberframe_serving.batching import Batcher, BatchingSettings, Costs, WouldWaitError
from timberframe_serving.metrics import Metrics
from timberframe_serving.models import LoadedModel, LoadSettings, load_model
from timberframe_serving.signatures import Array, Arrays, Signature
from timberframe_serving.tensorflow_requests import arrays_of_log
from timberframe_serving.warmup import batch_sizes, recorded_requests, try_signature

Wait = Callable[["asyncio.Future[Arrays]"], Awaitable[Arrays]]


async def at_once(future: asyncio.Future[Arrays]) -> Arrays:
    """Stands for no wait at all: `Servable.run` computes at once, or raises WouldWaitError and does nothing."""
    raise WouldWaitError


class Servable:
    """A loaded version: its signatures, and the requests that are in it.

    `load` and `warm` are called in a thread, all else on the event loop. A servable is swapped away while requests are
    in it: `drain` waits for them.
    """

    def __init__(self, model: str, version: int, folder: Path, loaded: LoadedModel) -> None:
        self.model, self.version, self.folder = model, version, folder
        self.signatures: Mapping[str, Signature] = loaded.signatures
        self.platform = loaded.platform
        self.together: dict[str, bool] = {}
        """By signature: whether rows of several requests may be computed together."""
        self.in_flight = 0
        self.coming = 0
        """Requests that have been let in by their heads and are not answered yet."""
        self._costs: dict[str, Costs] = {}
        self._close = loaded.close
        self._idle = asyncio.Event()
        self._batcher: Batcher | None = None
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def load(cls, model: str, version: int, folder: Path, settings: LoadSettings) -> Servable:
        """Loads a version from its folder; raises what the reader of its file raises."""
        return cls(model, version, folder, load_model(folder, settings))

    def warm(self, batching: BatchingSettings) -> None:
        """Runs every signature at every size of batch, then the recorded requests; raises what they raise."""
        for name, signature in self.signatures.items():
            if signature.outputs:
                self.together[name], self._costs[name] = try_signature(signature, batch_sizes(batching))
        for log in recorded_requests(self.folder):
            for chosen, given in arrays_of_log(log):
                found = self.signature(chosen)
                found.call(*found.arranged(given, self.model))

    def begin(self, batching: BatchingSettings, metrics: Metrics) -> None:
        """Makes it ready for `run`."""
        self._pool = ThreadPoolExecutor(batching.num_batch_threads, f"{self.model}-{self.version}")
        self._batcher = Batcher(self.model, batching, self._pool, metrics, self._costs)

    def signature(self, name: str = "") -> Signature:
        """Returns a signature; "" is `serving_default`, or the only one there is."""
        found = self.signatures.get(name or DEFAULT_SERVING_SIGNATURE_DEF_KEY)
        if found is None and not name and len(self.signatures) == 1:
            (found,) = self.signatures.values()
        if found is None:
            raise InvalidArgumentError(
                f"model '{self.model}', version {self.version}: has no signature "
                f"'{(name or DEFAULT_SERVING_SIGNATURE_DEF_KEY)[:200]}'; one of {sorted(self.signatures)} is required"
            )
        return found

    async def run(
        self,
        signature: Signature,
        given: Mapping[str, Array],
        wanted: Collection[str] = (),
        wait: Wait | None = None,
    ) -> dict[str, Array]:
        """Returns the outputs by name, all or the `wanted` ones.

        wait: waits for the future of outputs that are not there at once, and may cancel it.

        Raises InvalidArgumentError where inputs or wanted outputs are not those of the signature,
        ResourceExhaustedError where too many requests wait, and what the model raises.
        """
        assert self._batcher is not None
        names = [p.name for p in signature.outputs]
        if wanted and (unknown := [name[:200] for name in wanted if name not in names]):
            raise InvalidArgumentError(
                f"predict '{self.model}': outputs {unknown} are asked for; signature '{signature.name}' has {names}"
            )
        arrays = signature.arranged(given, self.model)
        self.in_flight += 1
        try:
            together = self.together.get(signature.name, False)
            found = self._batcher.submit(signature, arrays, together, may_wait=wait is not at_once)
            if isinstance(found, asyncio.Future):
                found = await (found if wait is None else wait(found))
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._idle.set()
        return {name: o for name, o in zip(names, found, strict=True) if not wanted or name in wanted}

    def check_room(self) -> None:
        """Raises ResourceExhaustedError where too many requests wait for another one to be worth reading."""
        if self._batcher is not None:
            self._batcher.check_room()

    def check_entrance(self) -> None:
        """Raises ResourceExhaustedError where a request that comes now would find no room.

        Of hundreds that come at the same moment, each would find the room that is there before the first has taken it.
        """
        if self._batcher is not None:
            self._batcher.check_room(self.coming)

    @property
    def quick(self) -> bool:
        """Whether a request would most likely be computed at once."""
        return self._batcher is not None and self._batcher.quick

    @property
    def waiting(self) -> int:
        """The number of rows that wait for their turn."""
        return self._batcher.waiting if self._batcher else 0

    async def drain(self) -> None:
        """Waits until no request is in it; no new one must be sent to it."""
        while self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    def close(self) -> None:
        """Frees what it holds."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        self._close()
