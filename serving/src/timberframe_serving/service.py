"""Questions of all protocols: a model's answer, its description, its versions; counted, recorded, checked for keys."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from timberframe_core.errors import InvalidArgumentError, NotFoundError, UnauthenticatedError
from timberframe_serving import messages
from timberframe_serving.codes import as_op_error, code_name
from timberframe_serving.manager import Manager, Version
from timberframe_serving.metrics import Gauge, Metrics
from timberframe_serving.recording import Recorder
from timberframe_serving.repository import configured_models, read_file, version_number
from timberframe_serving.servable import Servable, Wait
from timberframe_serving.signatures import CLASSIFY_METHOD, REGRESS_METHOD, Array, Signature
from timberframe_serving.tensorflow_requests import (
    classification_result,
    decode_examples,
    decode_inputs,
    encode_tensor,
    example_inputs,
    regression_result,
)
from timberframe_serving.tracing import Tracing


class Spec(NamedTuple):
    """The model, version and signature that a request is for; no version and no label is the newest that serves."""

    name: str
    version: int | None = None
    label: str | None = None
    signature: str = ""

    @classmethod
    def of(cls, message: Any) -> Spec:
        """Returns that of a ModelSpec message."""
        chosen = message.WhichOneof("version_choice")
        version = message.version.value if chosen == "version" else None
        label = message.version_label if chosen == "version_label" else None
        return cls(message.name, version, label, message.signature_name)

    @classmethod
    def parsed(cls, name: str, version: str, label: str | None = None, signature: Any = "") -> Spec:
        """Returns that of texts, and of the signature that JSON has; raises InvalidArgumentError where they are none.

        version: "" is none.
        """
        number = version_number(version) if version else None
        if version and number is None:
            raise InvalidArgumentError(f"request: version is '{version[:50]}'; a whole number is required")
        return cls(name, number, label).of_signature(signature)

    def of_signature(self, signature: Any) -> Spec:
        """Returns that of a signature that JSON has; raises InvalidArgumentError where it is no text."""
        if not isinstance(signature, str):
            raise InvalidArgumentError(f"request: signature_name is a {type(signature).__name__}; a string is required")
        return self._replace(signature=signature) if signature else self


@dataclass(frozen=True)
class Limits:
    """Limits of a request: bytes of its body, seconds until it has come, and seconds until it is answered."""

    body_bytes: int = 64 << 20
    body_seconds: float = 30.0
    answer_seconds: float = 30.0


@dataclass(frozen=True)
class Keys:
    """The keys that may ask; none means that everybody may. They are kept as digests."""

    digests: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Reads a file with a key on each line; raises InvalidArgumentError for one without keys."""
        lines = [line.strip() for line in read_file(path, "api_keys_file").decode().splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise InvalidArgumentError(f"api_keys_file '{path}': has no keys; at least one is required")
        return cls(tuple(hashlib.sha256(key.encode()).digest() for key in keys))

    def check(self, authorization: str | None, key: str | None) -> None:
        """Raises UnauthenticatedError unless a known key is given, as a bearer token or by itself."""
        if not self.digests:
            return
        scheme, _, token = (authorization or "").partition(" ")
        given = key or (token.strip() if scheme.lower() == "bearer" else "")
        digest = hashlib.sha256(given.encode(errors="surrogateescape")).digest()
        if not given or not any(hmac.compare_digest(digest, known) for known in self.digests):
            raise UnauthenticatedError(
                f"request: {'the key is not known' if given else 'has no key'}; "
                "'authorization: Bearer KEY' or 'x-api-key: KEY' is required"
            )


class _Counted:
    """The context that `Service.counted` returns."""

    __slots__ = ("_begin", "_labels", "_metrics", "_span")

    def __init__(self, metrics: Metrics, tracing: Tracing | None, *labels: str) -> None:
        self._metrics, self._labels = metrics, labels
        name, api, entrypoint = labels
        self._span = None if tracing is None else tracing.part(f"{entrypoint} {name}", model_name=name, api=api)

    def __enter__(self) -> None:
        if self._span is not None:
            self._span.__enter__()
        self._begin = time.perf_counter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._span is not None:
            self._span.__exit__(kind, error, trace)
        if error is None:
            self._metrics.requests.add(self._labels[0], "OK")
            self._metrics.latency.observe((time.perf_counter() - self._begin) * 1e6, *self._labels)
        elif isinstance(error, Exception):
            known = as_op_error(error)
            self._metrics.requests.add(self._labels[0], code_name(known.error_code))
            raise known from (None if known is error else error)


@dataclass
class Service:
    """A server's models and rules, whatever protocol asks."""

    manager: Manager
    metrics: Metrics
    keys: Keys = Keys()
    limits: Limits = Limits()
    may_change_models: bool = True
    stopping: bool = False
    recorder: Recorder = field(default_factory=Recorder)
    started: float = field(default_factory=time.time)
    tracing: Tracing | None = None

    def __post_init__(self) -> None:
        self.metrics.metrics.append(
            Gauge(
                "timberframe_serving_waiting_rows",
                "Rows that wait for their turn.",
                ("model_name", "version"),
                lambda: [((s.model, str(s.version)), s.waiting) for s in self.servables()],
            )
        )
        self.metrics.metrics.append(
            Gauge(
                "timberframe_serving_in_flight",
                "Requests that are being answered.",
                ("model_name", "version"),
                lambda: [((s.model, str(s.version)), s.in_flight) for s in self.servables()],
            )
        )

    def servables(self) -> Iterator[Servable]:
        """Yields all versions that serve."""
        for route in self.manager.routes.values():
            yield from route.versions.values()

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        return not self.stopping and self.manager.ready

    def counted(self, name: str, interface: str, entrypoint: str) -> _Counted:
        """Returns a context that counts a request with its result and time, and makes any error in it one of ours."""
        return _Counted(
            self.metrics, self.tracing, name if name in self.manager.models else "unknown", interface, entrypoint
        )

    def find(self, spec: Spec) -> tuple[Servable, Signature]:
        """Returns the version and signature of a request."""
        if not spec.name:
            raise InvalidArgumentError("request: names no model; model_spec.name is required")
        servable = self.manager.servable(spec.name, spec.version, spec.label)
        return servable, servable.signature(spec.signature)

    def check_room(self, spec: Spec) -> None:
        """Raises ResourceExhaustedError where a model's queue is full; finds the model as `find` does."""
        self.manager.servable(spec.name, spec.version, spec.label).check_room()

    def versions(self, spec: Spec) -> list[Version]:
        """Returns what is known of a model's versions, newest first; of one where the request names it."""
        model = self.manager.known(spec.name)
        newest = spec.version is None or (spec.version == 0 and 0 not in model.versions)
        if newest and spec.label is None:
            return sorted(model.versions.values(), key=lambda v: -v.number)
        number = spec.version if spec.label is None else model.settings.labels.get(spec.label)
        if number not in model.versions:
            asked = f"version {spec.version}" if spec.label is None else f"label '{spec.label[:200]}'"
            raise NotFoundError(f"model '{spec.name}': has no {asked}; its versions are {sorted(model.versions)}")
        return [model.versions[number]]

    # TensorFlow Serving's messages

    async def predict(self, request: Any, wait: Wait | None = None) -> Any:
        """Answers a PredictRequest."""
        servable, signature = self.find(Spec.of(request.model_spec))
        servable.check_room()
        outputs = await servable.run(signature, decode_inputs(request.inputs), list(request.output_filter), wait)
        response = messages.serving("PredictResponse")()
        fill_spec(response.model_spec, servable, signature.name)
        for port in signature.outputs:
            if port.name in outputs:
                response.outputs[port.name].CopyFrom(encode_tensor(outputs[port.name], port.dtype))
        self.recorder.record(self.manager.models[servable.model].settings, "predict_log", request)
        return response

    async def examples(self, request: Any, kind: str, wait: Wait | None = None) -> Any:
        """Answers a ClassificationRequest or RegressionRequest. kind: "classify" or "regress"."""
        spec = Spec.of(request.model_spec)
        servable, signature, result = await self._examine(spec, decode_examples(request.input), kind, wait)
        response = messages.serving("ClassificationResponse" if kind == "classify" else "RegressionResponse")()
        fill_spec(response.model_spec, servable, signature.name)
        response.result.CopyFrom(result)
        self.recorder.record(self.manager.models[servable.model].settings, f"{kind}_log", request)
        return response

    async def _examine(
        self, spec: Spec, examples: Array, kind: str, wait: Wait | None
    ) -> tuple[Servable, Signature, Any]:
        servable, signature = self.find(spec)
        method = CLASSIFY_METHOD if kind == "classify" else REGRESS_METHOD
        outputs = await servable.run(signature, example_inputs(signature, examples, method), (), wait)
        make = classification_result if kind == "classify" else regression_result
        return servable, signature, make(outputs, len(examples))

    async def multi_inference(self, request: Any, wait: Wait | None = None) -> Any:
        """Answers a MultiInferenceRequest: several signatures of one model for the same examples."""
        if len({t.model_spec.name for t in request.tasks}) != 1:
            raise InvalidArgumentError(f"request: has {len(request.tasks)} tasks; tasks of one model are required")
        examples = decode_examples(request.input)
        response = messages.serving("MultiInferenceResponse")()
        for task in request.tasks:
            kinds = {CLASSIFY_METHOD: "classify", REGRESS_METHOD: "regress"}
            if task.method_name not in kinds:
                raise InvalidArgumentError(
                    f"request: a task has the method '{task.method_name[:200]}'; one of {sorted(kinds)} is required"
                )
            kind = kinds[task.method_name]
            servable, signature, result = await self._examine(Spec.of(task.model_spec), examples, kind, wait)
            made = response.results.add()
            fill_spec(made.model_spec, servable, signature.name)
            (made.classification_result if kind == "classify" else made.regression_result).CopyFrom(result)
        return response

    async def reload(self, config: Any) -> None:
        """Puts a ModelServerConfig in place of the present one; raises why one of its models does not serve then."""
        self.check_may_change()
        models = configured_models(config)
        await self.manager.configure(models)
        for name in models:
            if not self.manager.models[name].stopped:
                self.manager.servable(name)

    def check_may_change(self) -> None:
        """Raises NotFoundError where requests may not load, unload or configure models."""
        if not self.may_change_models:
            raise NotFoundError("server: was started without --allow_model_control; models are not changed by requests")


def fill_spec(spec: Any, servable: Servable, signature: str) -> None:
    """Writes the version and signature that answered into a ModelSpec."""
    spec.name, spec.signature_name = servable.model, signature
    spec.version.value = servable.version


def signature_map(signatures: Iterable[Signature]) -> Any:
    """Returns the SignatureDefMap of a version."""
    made = messages.serving("SignatureDefMap")()
    for signature in signatures:
        made.signature_def[signature.name].CopyFrom(signature.definition)
    return made
