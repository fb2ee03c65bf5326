"""Arguments that the functions of convolution and pooling share."""

from __future__ import annotations

from typing import Any

from timberframe_core.errors import InvalidArgumentError


def spatial_values(values: Any, data_format: str, what: str) -> tuple[int, ...]:
    """Returns one value, the two spatial ones, or all four, as the four values of a layout."""
    given = tuple(values) if isinstance(values, list | tuple) else (values,)
    if len(given) == 4:
        return given
    if len(given) not in (1, 2):
        raise InvalidArgumentError(f"tf.nn: {what} is {list(given)}; it must have 1, 2 or 4 values")
    pair = given * 2 if len(given) == 1 else given
    return (1, 1, *pair) if data_format == "NCHW" else (1, *pair, 1)


def padding_attrs(padding: Any) -> dict[str, Any]:
    """Returns the attrs of a padding: its name, or pairs of amounts for the dimensions."""
    if isinstance(padding, str):
        return {"padding": padding}
    amounts = tuple(int(amount) for pair in padding for amount in pair)
    return {"padding": "EXPLICIT", "explicit_paddings": amounts}


def either(function: str, name: str, value: Any, other_name: str, other: Any) -> Any:
    """Returns the one that is given of an argument and its other name."""
    if (value is None) == (other is None):
        count = "neither" if value is None else "both"
        raise InvalidArgumentError(f"tf.nn.{function}: {count} of {name} and {other_name} given; one is required")
    return other if value is None else value
