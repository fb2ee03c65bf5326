"""`tf.contrib.training`: HParams, the settings of a model by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from timberframe.lazy import lazy_names
from timberframe_core.errors import InvalidArgumentError, MissingNameError

__all__ = ["HParams", "parse_values"]

_BUCKETING = ("bucket", "bucket_by_sequence_length")
_EVALUATION = ("checkpoints_iterator", "wait_for_new_checkpoint")
_LEARNING = ("add_gradients_summaries", "clip_gradient_norms", "create_train_op", "multiply_gradients")
__getattr__ = lazy_names(
    __name__,
    {
        **{name: f"timberframe_contrib.contrib.bucketing:{name}" for name in _BUCKETING},
        **{name: f"timberframe_contrib.contrib.evaluation:{name}" for name in _EVALUATION},
        **{name: f"timberframe_contrib.contrib.learning:{name}" for name in _LEARNING},
    },
)

_ENTRY = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,|$)"
)
"""A setting in a text, up to the comma after it."""


class HParams:
    """Settings as attributes, each of a type that it keeps: ``HParams(rate=0.1, units=[64, 32])``.

    A list is a setting whose elements have one type. model_structure: any object that belongs to the settings.
    """

    def __init__(self, model_structure: Any = None, **kwargs: Any) -> None:
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a setting. Raises InvalidArgumentError where there is one of the name, and for an empty list."""
        if hasattr(self, name):
            raise InvalidArgumentError(f"HParams: '{name}' exists; a name that is free is required")
        if isinstance(value, list | tuple) and not value:
            raise InvalidArgumentError(f"HParams: '{name}' is an empty list; its first element says the type")
        many = isinstance(value, list | tuple)
        self._types[name] = (type(value[0]) if many else type(value)), many
        setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a setting to a value of its type; an integer where that is float."""
        kind, many = self._type_of(name)
        if many != isinstance(value, list | tuple):
            raise InvalidArgumentError(
                f"HParams: '{name}' is {value!r}; {'a list' if many else 'a value that is no list'} is required"
            )
        setattr(self, name, [_cast(name, kind, v) for v in value] if many else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a setting, if there is one of the name."""
        if self._types.pop(name, None) is not None:
            delattr(self, name)

    def _type_of(self, name: str) -> tuple[type, bool]:
        if name not in self._types:
            raise MissingNameError(f"HParams: there is no '{name}'; known are {', '.join(sorted(self._types))}")
        return self._types[name]

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes several settings; returns the object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, hparams: str) -> HParams:
        """Changes settings by a text: ``rate=0.1,units=[64,32],units[1]=16``; returns the object."""
        types = {name: kind for name, (kind, _) in self._types.items()}
        for name, value in parse_values(hparams, types).items():
            if isinstance(value, dict):
                elements = list(getattr(self, name))
                for index, element in value.items():
                    if index >= len(elements):
                        raise InvalidArgumentError(
                            f"HParams: {name}[{index}] is given; '{name}' has {len(elements)} elements"
                        )
                    elements[index] = element
                value = elements
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Changes settings by a JSON object; returns the object."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """Returns all settings by name."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a setting, or the default where there is none; the default must have the setting's type."""
        if key not in self._types:
            return default
        kind, many = self._types[key]
        if default is not None:
            for value in default if many and isinstance(default, list | tuple) else [default]:
                _cast(key, kind, value)
        return getattr(self, key)

    def to_json(
        self, indent: int | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False
    ) -> str:
        """Returns all settings as JSON; functions are left out."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def get_model_structure(self) -> Any:
        """Returns the object that belongs to the settings."""
        return self._model_structure

    def set_model_structure(self, model_structure: Any) -> None:
        """Changes the object that belongs to the settings."""
        self._model_structure = model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """Returns the settings in a text such as ``a=1,b=[2,3],c[0]=4``: {"a": 1, "b": [2, 3], "c": {0: 4}}.

    type_map: the type of each name, of a list that of its elements. Raises InvalidArgumentError for other names, unless
    ignore_unknown, and for text that is no setting.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        entry = _ENTRY.match(values, position)
        if entry is None or entry.end() == position:
            raise InvalidArgumentError(f"HParams: {values[position:]!r} is no setting; name=value is required")
        position = entry.end()
        name, index = entry["name"], entry["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise InvalidArgumentError(f"HParams: there is no '{name}'; known are {', '.join(sorted(type_map))}")
        if name in found and (index is None or not isinstance(found[name], dict) or int(index) in found[name]):
            raise InvalidArgumentError(f"HParams: '{name}' is there twice in {values!r}; a name may be there once")
        read = _reader(name, type_map[name])
        if entry["list"] is not None:
            if index is not None:
                raise InvalidArgumentError(f"HParams: {name}[{index}] is a list; one value is required")
            found[name] = [read(part) for part in entry["list"].split(",") if part.strip()]
        elif index is not None:
            found.setdefault(name, {})[int(index)] = read(entry["value"])
        else:
            found[name] = read(entry["value"])
    return found


def _reader(name: str, kind: type) -> Callable[[str], Any]:
    """Returns what makes a value of a text."""

    def read(text: str) -> Any:
        text = text.strip()
        if kind is bool:
            if text.lower() in ("true", "1"):
                return True
            if text.lower() in ("false", "0"):
                return False
        else:
            try:
                return text if kind is type(None) else kind(text)
            except ValueError:
                pass
        raise InvalidArgumentError(f"HParams: '{name}' is {text!r}; a value of type {kind.__name__} is required")

    return read


def _cast(name: str, kind: type, value: Any) -> Any:
    """Returns a value as the type of a setting; InvalidArgumentError where it would lose something."""
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    if kind is type(None) or value is None:
        return value
    suits = {
        bool: False,
        int: isinstance(value, int),
        float: isinstance(value, int | float),
        str: isinstance(value, bytes),
    }.get(kind, False)
    if not suits or isinstance(value, bool):
        raise InvalidArgumentError(f"HParams: '{name}' is {value!r}; a value of type {kind.__name__} is required")
    return value.decode() if isinstance(value, bytes) else kind(value)
