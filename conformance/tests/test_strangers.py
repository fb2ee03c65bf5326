"""Mutants of strangers: the rule that gives their level, and what proving one does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.mutants.strangers.base import Stranger, stranger
from timberframe_conformance.mutants.strangers.hosts import HOSTS
from timberframe_conformance.mutants.strangers.rule import level_of_bug
from timberframe_conformance.options import Options

STRANGERS = {n: m for n, m in MUTANTS.items() if isinstance(m, Stranger)}
FLOAT32 = {"T": "float32"}


@pytest.mark.parametrize(
    ("op", "types", "attrs", "example", "level"),
    [
        ("Conv2D", FLOAT32, {"padding": "SAME"}, None, "core"),
        ("Conv2D", FLOAT32, {"padding": "SAME", "strides": (1, 2, 2, 1)}, None, "inference"),
        ("Conv2D", FLOAT32, {"dilations": (1, 2, 2, 1)}, None, "breadth"),
        ("MatMul", FLOAT32, {"transpose_b": True}, None, "training"),
        ("MatMul", {"T": "float16"}, {}, None, "breadth"),
        ("Mean", FLOAT32, {"keep_dims": True}, [(12, 16), {"values": [-1]}], "inference"),
        ("Sum", FLOAT32, {"keep_dims": True}, [(3, 2, 4, 4), {"values": [-1]}], "training"),
        ("DepthwiseConv2dNative", FLOAT32, {}, [(2, 8, 8, 4), (3, 3, 4, 2)], "breadth"),
        ("ArgMax", FLOAT32, {}, None, "breadth"),
    ],
)
def test_the_level_follows_from_the_networks_that_call_the_op(
    op: str, types: Any, attrs: Any, example: Any, level: str
) -> None:
    assert level_of_bug(op, types, attrs, example) == level


def test_there_are_enough_of_all_levels_and_hosts_with_their_sources() -> None:
    assert len(STRANGERS) >= 71
    assert all(m.source for m in STRANGERS.values())
    assert {m.level for m in STRANGERS.values()} >= {"core", "inference", "training", "breadth"}
    assert {m.host for m in STRANGERS.values()} == set(HOSTS)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="there is another one"):
        stranger("queued-relu-nan", "Relu", "NaN gives one", "nobody")(lambda c: c.true)


def test_a_mutant_is_noticed_and_its_host_is_right_without_it() -> None:
    proof = prove(HOSTS["npu"].open(), MUTANTS["queued-relu-nan"], Options("npu"))
    assert proof.ok, proof.problems
    assert proof.first.startswith("forward/Relu/float32/")


@pytest.mark.parametrize(
    ("mutant", "case"),
    [
        ("sub-over-second", "aliasing/Sub/float32/read-after-"),
        ("matmul-tensor-float-tiles", "forward/MatMul/float32/32x512_512x32"),
    ],
)
def test_bugs_that_a_reader_of_the_guides_planted_are_noticed(mutant: str, case: str) -> None:
    proof = prove(HOSTS["npu"].open(), MUTANTS[mutant], Options("npu"))
    assert proof.ok, proof.problems
    assert proof.first.startswith(case)


def test_a_mutant_without_a_bug_is_not_noticed() -> None:
    harmless = dataclasses.replace(STRANGERS["queued-relu-nan"], name="harmless", bug=lambda c: c.true)
    proof = prove(HOSTS["npu"].open(), harmless, Options("npu"))
    assert proof.problems == [f"none of {proof.tried} cases up to level core noticed"]
    assert proof.tried > 10


def test_a_bug_that_raises_what_it_should_not_is_no_find() -> None:
    broken = dataclasses.replace(STRANGERS["queued-relu-nan"], name="broken", bug=lambda c: c.no_such_member)
    proof = prove(HOSTS["npu"].open(), broken, Options("npu"))
    assert "broken mutant broken: AttributeError" in proof.problems[0]


def test_they_are_left_out_where_another_device_is_asked_for(command: Any) -> None:
    mutant = STRANGERS["relu6-no-limit"]
    assert [mutant.fits(name) for name in ("", "npu", "cpu")] == [True, True, False]
    output = command("mutants", "--list")[1]
    assert "relu6-no-limit: Relu6: nothing is limited to 6 (level inference, npu; ucb-bar/Baremetal-NN#31)" in output
