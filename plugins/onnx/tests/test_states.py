"""States: outputs that stay in the session as inputs of the next run, and caches that are overwritten in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from decoder import decoder, states

import timberframe_onnx
from timberframe_core.errors import InvalidArgumentError

LAYERS, HEADS, SIZE, PLACES = 2, 4, 16, 512
SUM = """
<ir_version: 10, opset_import: ["" : 21]>
total (float[2] x, float[SIZE] before) => (float[2] shown, float[2] after)
{
  after = Add(before, x)
  shown = Neg(after)
}"""


def summing(size: str = "2") -> onnx.ModelProto:
    return onnx.parser.parse_model(SUM.replace("SIZE", size))


def feeds(tokens: int, start: int, seed: int = 1) -> dict[str, Any]:
    x = np.random.default_rng(seed).standard_normal((1, tokens, HEADS * SIZE), np.float32)
    return {"x": x, "starts": np.array([start]), "lengths": np.array([start + tokens])}


def test_a_state_is_what_the_last_run_made() -> None:
    model = timberframe_onnx.load(summing(), states={"before": "after"})
    assert model.signature == "(x: float[2]) -> (shown: float[2])"
    x = np.array([1, 2], np.float32)
    assert [model.run({"x": x})["shown"].tolist() for _ in range(3)] == [[-1, -2], [-2, -4], [-3, -6]]


def test_reset_makes_states_zeros() -> None:
    model = timberframe_onnx.load(summing(), states={"before": "after"})
    x = np.array([1, 2], np.float32)
    model.run({"x": x})
    model.reset()
    assert model.run({"x": x})["shown"].tolist() == [-1, -2]


@pytest.mark.parametrize("groups", [HEADS, 2])
def test_a_decoder_with_states_gives_what_one_gives_whose_caches_are_fed(groups: int) -> None:
    proto = decoder(LAYERS, HEADS, SIZE, PLACES, groups)
    kept, fed = timberframe_onnx.load(proto, states=states(LAYERS)), timberframe_onnx.load(proto)
    caches = {name: np.zeros((1, groups, PLACES, SIZE), np.float32) for name in states(LAYERS)}
    for tokens, start in ((100, 0), (1, 100), (1, 101), (5, 102)):
        given = feeds(tokens, start, start)
        found = fed.run({**given, **caches})
        caches = {name: found[after] for name, after in states(LAYERS).items()}
        np.testing.assert_allclose(kept.run(given)["y"], found["y"], rtol=1e-4, atol=1e-5)


def test_caches_are_overwritten_in_place() -> None:
    model = timberframe_onnx.load(decoder(LAYERS, HEADS, SIZE, PLACES), states=states(LAYERS))
    model.run(feeds(1, 7))
    (peak,) = model.explain(feeds(1, 8)).peak_bytes.values()
    assert peak < HEADS * PLACES * SIZE * 4  # all that a run allocates is less than one of the four caches


@pytest.mark.parametrize(
    ("size", "given", "said"),
    [
        (
            "2",
            {"befor": "after"},
            r"states name \['befor'\]; inputs are \['x', 'before'\], outputs \['shown', 'after'\]",
        ),
        ("2", {"before": "afte"}, r"states name \['afte'\]"),
        ("n", {"before": "after"}, r"input before: float\[n\] is a state; a tensor of known sizes is required"),
    ],
)
def test_states_that_cannot_be_are_refused(size: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        timberframe_onnx.load(summing(size), states=given)
