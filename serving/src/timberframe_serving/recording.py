"""Requests that are written down as TensorFlow Serving does, to warm up later versions."""

from __future__ import annotations

import logging
import random
import time
from typing import Any

import timberframe as tf
from timberframe_core.errors import OpError
from timberframe_serving import messages
from timberframe_serving.repository import ModelSettings

_log = logging.getLogger(__name__)


class Recorder:
    """Writes a share of the requests, as PredictionLog messages, into a TFRecord file for each model.

    The file is the `filename_prefix` of the model's logging_config; a copy of it as
    assets.extra/tf_serving_warmup_requests in a version's folder warms that version up. Where it cannot be written, the
    log says so once, and requests are answered as before.
    """

    def __init__(self) -> None:
        self._files: dict[str, Any] = {}

    def record(self, settings: ModelSettings, kind: str, request: Any) -> None:
        """Writes a request with the probability that the model's settings have. kind: such as "predict_log"."""
        if not settings.sampling_rate or not settings.record_to or random.random() >= settings.sampling_rate:
            return
        log = messages.serving("PredictionLog")()
        getattr(log, kind).request.CopyFrom(request)
        log.log_metadata.timestamp_secs = int(time.time())
        log.log_metadata.model_spec.CopyFrom(request.model_spec)
        try:
            if settings.record_to not in self._files:
                self._files[settings.record_to] = tf.io.TFRecordWriter(settings.record_to)
            writer = self._files[settings.record_to]
            if writer is not None:
                writer.write(log.SerializeToString())
                writer.flush()
        except (OSError, OpError) as error:
            self._files[settings.record_to] = None
            _log.error("requests are not recorded", extra={"file": settings.record_to, "error": str(error)})

    def close(self) -> None:
        """Closes the files."""
        for writer in self._files.values():
            if writer is not None:
                writer.close()
        self._files.clear()
