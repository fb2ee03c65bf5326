"""The classes of the messages that `schema.py` lists."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef.message_classes import add_messages, message
from timberframe_serving import schema

add_messages(schema.TENSORFLOW_SERVING, schema.SERVING_MESSAGES, schema.SERVING_ENUMS)
add_messages(schema.OPEN_INFERENCE, schema.INFERENCE_MESSAGES, {})
add_messages(schema.HEALTH, schema.HEALTH_MESSAGES, schema.HEALTH_ENUMS)


@cache
def serving(name: str) -> Any:
    """Returns the class of a message of TensorFlow Serving, such as `PredictRequest`."""
    return message(name, schema.TENSORFLOW_SERVING)


@cache
def inference(name: str) -> Any:
    """Returns the class of a message of the Open Inference Protocol, such as `ModelInferRequest`."""
    return message(name, schema.OPEN_INFERENCE)


def health(name: str) -> Any:
    """Returns the class of a message of gRPC's health service."""
    return message(name, schema.HEALTH)


def parse(kind: Any, data: bytes) -> Any:
    """Returns the message of class `kind` in `data`; raises InvalidArgumentError where it is none."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"request: {len(data)} bytes do not parse as {kind.DESCRIPTOR.full_name} ({error}); "
            "a whole message of this class is required"
        ) from None
