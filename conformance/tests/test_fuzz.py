"""conformance fuzz: draws, oracles, shrinking, the store, crashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_conformance.fuzz.draw import draw_program
from timberframe_conformance.fuzz.findings import Finding, Store, regressions
from timberframe_conformance.fuzz.judge import ORACLES, judge
from timberframe_conformance.fuzz.pool import Pool
from timberframe_conformance.fuzz.program import Program, Step, from_json, to_json
from timberframe_conformance.fuzz.shrink import shrink
from timberframe_conformance.target import Target
from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_core.runtime.devices import devices_for

tf: Any = timberframe
Redefine = Callable[..., None]


def feed(value: Any, known: Any = "all") -> Step:
    array = np.asarray(value, np.float32)
    return Step("feed", value=array, known=array.shape if known == "all" else known)


X = [[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]]

SMALL = Program(
    (
        feed(X, (None, 3)),
        Step("const", value=np.float32([1, 2, 3])),
        Step("op", "Mul", ((0, 0), (1, 0))),
        Step("op", "Tanh", ((2, 0),)),
        Step("grad", inputs=(((3, 0),), ((0, 0),))),
    ),
    ((3, 0), (2, 0), (4, 0)),
)
"""tanh of three times a batch, and its gradient."""


class WrongSession:
    """A session whose results a function changes: ``change(call's number, fetches, feeds, results)``."""

    def __init__(self, session: Any, change: Callable[..., Any]) -> None:
        self.session = session
        self.change = change
        self.number = 0

    def __enter__(self) -> WrongSession:
        return self

    def __exit__(self, *_: Any) -> None:
        self.session.close()

    def run(self, fetches: Any, feeds: Any = None) -> Any:
        self.number += 1
        return self.change(self.number, fetches, feeds or {}, self.session.run(fetches, feeds))

    def make_callable(self, fetches: Any, feeds: Any) -> Any:
        call = self.session.make_callable(fetches, feeds)
        return lambda *values: self.change(0, fetches, {}, call(*values))


class WrongTarget:
    """A target whose sessions are wrong: ``change(settings of the session, ...)`` as in WrongSession."""

    def __init__(self, target: Target, change: Callable[..., Any]) -> None:
        self.target = target
        self.change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def session(self, graph: Any, **config: Any) -> Any:
        return WrongSession(self.target.session(graph, **config), lambda *rest: self.change(config, *rest))


def bent(results: Any) -> Any:
    """Results with the first one changed."""
    if isinstance(results, list):
        return [bent(results[0]), *results[1:]]
    return results + np.float32(0.5) if isinstance(results, np.ndarray) else results


def when(condition: Callable[..., bool]) -> Callable[..., Any]:
    """Changes results if a condition on (settings, number, fetches, feeds) holds."""
    return lambda config, number, fetches, feeds, found: (
        bent(found) if condition(config, number, fetches, feeds) else found
    )


DEFECTS: dict[str, Callable[..., Any]] = {
    "truth": when(lambda *_: True),
    "again": when(lambda config, number, fetches, feeds: number == 2),
    "batch": when(lambda config, number, fetches, feeds: number == 3),
    "threads": when(lambda config, number, fetches, feeds: number > 4),
    "one thread": when(lambda config, *_: config.get("intra_op_parallelism_threads") == 1),
    "feeds": when(lambda config, number, fetches, feeds: any(isinstance(x, list) for x in feeds.values())),
    "feed names": when(lambda config, number, fetches, feeds: any(isinstance(t, str) for t in feeds)),
    "fed intermediate": when(lambda config, number, fetches, feeds: len(feeds) > 1),
    "fetches": lambda config, number, fetches, feeds, found: tuple(found) if isinstance(found, list) else found,
    "each alone": lambda config, number, fetches, feeds, found: found if isinstance(fetches, list) else found + 1,
    "make_callable": when(lambda config, number, fetches, feeds: number == 0),
    "passes": when(lambda config, *_: config.get("optimizations", {}).get("cse") is False),
}
"""By oracle, a defect of sessions that it must notice."""


@pytest.mark.parametrize("oracle", DEFECTS)
def test_oracle_notices_a_wrong_session(target: Target, oracle: str) -> None:
    wrong: Any = WrongTarget(target, DEFECTS[oracle])
    assert judge(SMALL, wrong, oracles=[oracle]).failure is not None
    assert judge(SMALL, target, oracles=[oracle]).failure is None


def test_shapes_notice_a_shape_function_that_needs_to_know(target: Target, redefine: Redefine) -> None:
    shape = registry.get("Tanh").shape

    def needs(c: Any) -> Any:
        if c.shapes[0] is None:
            raise c.error("the rank is unknown; it must be known")
        return shape(c)

    redefine("Tanh", shape=needs)
    failure = judge(SMALL, target, oracles=["shapes"]).failure
    assert failure is not None
    assert "with no shapes known" in failure[1]


def test_import_that_loses_a_value_is_noticed(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    read = tf.import_graph_def

    def wrong(message: Any, **rest: Any) -> Any:
        node = next(n for n in message.node if n.op == "Tanh")
        node.op = "Sin"
        return read(message, **rest)

    monkeypatch.setattr(tf, "import_graph_def", wrong)
    failure = judge(SMALL, target, oracles=["GraphDef"]).failure
    assert failure is not None


def test_exception_of_python_while_building_is_a_failure(target: Target, redefine: Redefine) -> None:
    def broken(op: Any, grad: Any) -> Any:
        raise KeyError("lost")

    redefine("Tanh", gradient=broken)
    failure = judge(SMALL, target).failure
    assert failure is not None
    assert failure[0] == "build"
    assert "KeyError" in failure[1]


@pytest.mark.slow
def test_all_oracles_compare_something(target: Target) -> None:
    verdict = judge(SMALL, target)
    assert verdict.failure is None
    assert {name for name in ORACLES if not verdict.compared[name]} <= {"tensorflow", "versions", "streams", "process"}


def test_program_is_void_where_an_op_refuses_its_values(target: Target) -> None:
    begin = Step("feed", value=np.array([5], np.int32), known=(1,))
    size = Step("const", value=np.array([0], np.int32))
    program = Program((feed([1.0]), begin, size, Step("op", "Slice", ((0, 0), (1, 0), (2, 0)))), ((3, 0),))
    assert judge(program, target).invalid


@pytest.fixture(scope="module")  # a pool asks the device about every op
def pool(target: Target) -> Pool:
    return Pool(target)


@pytest.mark.slow
def test_equal_seeds_draw_equal_programs(pool: Pool) -> None:
    texts = [to_json(draw_program(pool, 3, n)) for n in (0, 1, 0)]
    assert texts[0] == texts[2] != texts[1]


@pytest.mark.slow
def test_program_survives_json(pool: Pool) -> None:
    for number in range(4):
        program = draw_program(pool, 5, number)
        assert to_json(from_json(to_json(program))) == to_json(program)


def test_op_of_a_vendor_takes_part(pool: Pool) -> None:
    assert {"Tanh", "GatherV2", "MatMul", "TopKV2"} <= set(pool.names)
    assert not {"RandomUniform", "Placeholder", "VarHandleOp"} & set(pool.names)


def test_shrinking_leaves_what_fails(target: Target) -> None:
    steps = list(SMALL.steps[:4])
    steps += [Step("op", "Neg", ((3, 0),)), Step("op", "AddV2", ((4, 0), (2, 0))), Step("op", "Exp", ((5, 0),))]
    small = shrink(
        Program(tuple(steps), ((6, 0), (3, 0))),
        lambda p: any(s.op == "Neg" for s in p.steps) and not judge(p, target, oracles=[]).invalid,
    )
    assert [s.kind for s in small.steps] == ["feed", "op"]
    assert small.steps[1].op == "Neg"
    assert small.steps[0].value is not None
    assert small.steps[0].value.size == 1


def test_script_runs_alone(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(Finding(SMALL, "crash", "wrong", "reference").script(target.spec), "script", "exec"), {})
    output = capsys.readouterr().out
    assert output.count("array(") == 6
    assert "0.4621" in output


@pytest.mark.slow  # the first
@pytest.mark.parametrize("number", range(6))
def test_script_of_a_drawn_program_builds_the_same_graph(target: Target, pool: Pool, number: int) -> None:
    from timberframe_conformance.fuzz.build import build

    program = draw_program(pool, 11, number)
    script = Finding(program, "truth", "", "reference").script(target.spec)
    with tf.Graph().as_default() as graph:
        exec(compile(script.split("with tf.Session()")[0], "script", "exec"), {})
        names = [op.type for op in graph.get_operations()]
    assert [n for n in names if n != "Const"] == [
        op.type for op in build(program, target.spec).graph.get_operations() if op.type != "Const"
    ]


@pytest.mark.slow
def test_command_reports_what_it_compared(command: Any, tmp_path: Path) -> None:
    status, output, _ = command(
        "fuzz",
        "--device=reference",
        "--programs=3",
        "--seed=1",
        "--jobs=1",
        f"--store={tmp_path}",
        "--oracles=truth,again",
    )
    assert status == 0, output
    assert "truth" in output
    assert "3 programs" in output


@pytest.mark.slow
def test_stored_failure_is_replayed_first(command: Any, tmp_path: Path) -> None:
    step = Step("call", "nn.sigmoid_cross_entropy_with_logits", ((0, 0), (0, 0)), {"inputs": ("labels", "logits")})
    program = Program((feed([0.0]), step, Step("grad", inputs=(((1, 0),), ((0, 0),)))), ((2, 0),))
    store = Store(tmp_path, "reference")
    store.add(Finding(program, "slopes", "wrong", "reference"), "/device:REFERENCE:0")
    fuzz = ("fuzz", "--device=reference", "--programs=1", "--seed=1", "--jobs=1", f"--store={tmp_path}")
    status, output, _ = command(*fuzz, "--mutant=logistic-kink", "--oracles=slopes")
    assert status == 1
    assert output.index("still  slopes") < output.index("oracle ")
    assert len(store.all()) == 1
    status, output, _ = command(*fuzz)
    assert status == 0, output
    assert "fixed  slopes" in output
    assert not store.all()


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "verdict"), [("dies", "crash"), ("hangs", "timeout")])
def test_program_that_ends_its_process_is_reported(command: Any, tmp_path: Path, mutant: str, verdict: str) -> None:
    store = Store(tmp_path, "reference")
    store.add(Finding(SMALL, verdict, "", "reference"), "/device:REFERENCE:0")
    status, output, _ = command(
        "fuzz", "--device=reference", "--programs=1", "--seed=2", "--jobs=1", f"--store={tmp_path}", "--timeout=2",
        f"--mutant={mutant}", "--oracles=again",
    )  # fmt: skip
    assert status == 1
    assert verdict in output
    assert "1 program in" in output


@pytest.mark.slow  # all together
@pytest.mark.parametrize("path", regressions(), ids=lambda p: p.stem)
def test_failure_of_the_past_stays_fixed(target: Target, path: Path) -> None:
    verdict = judge(Finding.from_json(path.read_text()).program, target)
    assert not verdict.invalid
    assert verdict.failure is None


BUGS = {
    "assembles-twice": "results-of-lists-assembled-twice",
    "logistic-kink": "logistic-loss-at-logit-zero",
    "offset-of-unknown": "join-of-sizes-known-in-part",
    "joins-unknown": "join-of-integers-known-in-part",
    "slices-passed-on": "slices-through-an-addition",
}
"""Known bugs of the framework, and the past failure that each brings back."""

BRING_BACK = """
import sys
from pathlib import Path
from timberframe_conformance.fuzz.expected import expect
from timberframe_conformance.fuzz.findings import Finding
from timberframe_conformance.fuzz.judge import judge
from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target

FRAMEWORK_MUTANTS[sys.argv[1]].apply()
print(judge(Finding.from_json(Path(sys.argv[2]).read_text()).program, open_target(Options("cpu"))).failure)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_known_bug_of_the_framework_is_noticed(name: str) -> None:
    if not any(d.type == "CPU" for d in devices_for(tf.SessionConfig())):
        pytest.skip("the CPU's plugin is not installed")  # what the first bug needs, others lack
    (path,) = [str(p) for p in regressions() if p.stem == BUGS[name]]
    arguments = [sys.executable, "-c", BRING_BACK, name, path]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.startswith("("), done.stdout + done.stderr


def test_unknown_oracle_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("fuzz", "--device=reference", "--oracles=luck")
    assert status == 2
    assert "luck" in errors


def test_dtypes_of_attrs_survive_json() -> None:
    step = Step("op", "Cast", ((0, 0),), {"DstT": as_dtype("bfloat16"), "x": (1, (2.5, float("inf")), b"\xff")})
    back = from_json(to_json(Program((feed([1.0]), step), ((1, 0),)))).steps[1]
    assert back.attrs == step.attrs
