"""The tool that puts faults into C sources: what it finds, and how its results add up."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target
from timberframe_core.ops.definition import registry

pytest.importorskip("tree_sitter_c", reason="requirements-full.txt has it")
TOOL = Path(__file__).parent.parent / "tools/source_mutants"
sys.path.insert(0, str(TOOL))

from child import in_child
from faults import Fault, apply_fault, find_faults
from ledger import Judged, Ledger, Result
from trial import Trial, refused
from usage import record_ops
from workshop import CSRC, HEADERS, ROOT, SDK_HEADERS, Workshop, table_entries

FUNCTION = b"""static int64_t count(const float *x, int64_t n) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    if (is_set(x, i)) found += 2;
  }
  return found;
}
"""
MACRO = b"""#define COUNT(name, type)              \\
  static int name##_at(const type *x) { \\
    if (x[0] <= 1) return 7;            \\
    go(x,                               \\
       name##_size);                    \\
    return 0;                           \\
  }
"""


def described(source: bytes) -> list[str]:
    return [f.describe() for f in find_faults(source)]


@pytest.mark.parametrize(
    "fault",
    [
        "comparison: '<' -> '<='", "comparison: '<' -> '>'", "arithmetic: '+=' -> '-='", "arithmetic: '++' -> '--'",
        "constant: '2' -> '3'", "constant: '2' -> '1'", "deletion: 'found += 2;' -> ';'", "swap: 'x, i' -> 'i, x'",
        "condition: '(is_set(x, i))' -> '(!(is_set(x, i)))'",
    ],
)  # fmt: skip
def test_kind_of_fault_is_found(fault):
    assert fault in described(FUNCTION)


@pytest.mark.parametrize("entry", ['{"abs_int8", abs_int8}', '{"abs" "_int8", abs_int8}'])
def test_kernel_of_a_table_is_found_however_its_name_is_written(entry):
    assert table_entries(f'table[] = {{ {entry}, {{"other", thing}}, {{0}} }};') == ["abs_int8"]


def test_constant_never_becomes_negative():
    assert "constant: '0' -> '-1'" not in described(FUNCTION)


def test_fault_is_put_where_it_was_found():
    fault = next(f for f in find_faults(FUNCTION) if f.after == "<=")
    assert apply_fault(FUNCTION, fault) == FUNCTION.replace(b"i < n", b"i <= n")


def test_bodies_of_macros_have_faults():
    assert "comparison: '<=' -> '>='" in described(MACRO)


def test_statement_deleted_from_a_macro_leaves_its_lines():
    fault = next(f for f in find_faults(MACRO) if f.kind == "deletion" and f.before.startswith("go("))
    assert apply_fault(MACRO, fault).count(b"\\\n") == MACRO.count(b"\\\n")


@pytest.mark.parametrize(
    ("body", "deleted"), [("(2 * SIDE)", False), ("0x1p-2f", False), ("store(x, 2)", True), ("FIND_BOX;", True)]
)
def test_bodies_of_macros_that_are_values_are_not_deleted(body, deleted):
    kinds = [f.kind for f in find_faults(f"#define MACRO {body}\n".encode())]
    assert ("deletion" in kinds) is deleted


def test_fault_names_the_line():
    fault = next(f for f in find_faults(MACRO) if f.before == "7")
    assert (fault.line, fault.text, fault.column) == (3, "if (x[0] <= 1) return 7;", 22)


@pytest.mark.parametrize("folder", [CSRC, HEADERS, SDK_HEADERS])
def test_faults_of_all_sources_can_be_put_in(folder):
    for path in sorted(f for f in (ROOT / folder).rglob("*") if f.suffix in (".c", ".h", ".inc")):
        source = path.read_bytes()
        for fault in find_faults(source)[::10]:
            assert apply_fault(source, fault) != source


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    pytest.importorskip("mesonbuild")
    made = Workshop(tmp_path_factory.mktemp("source_mutants"))
    made.configure()
    return made


def test_copy_holds_all_that_the_build_reads(workshop):
    assert [c for c in workshop.compilations() if c["file"].endswith("movement/move.c")]


def test_sources_that_the_build_writes_are_searched_for_kernels(workshop):
    assert "csrc/elementwise_generated.c" in [c["file"] for c in workshop.compilations()]


def test_headers_of_the_sdk_get_faults_as_the_cpus_sources_do(workshop):
    assert {CSRC / "reduce/reducer.h", SDK_HEADERS / "timberframe/math/zeta.h"} <= set(workshop.sources(headers=False))


def test_results_add_up(tmp_path):
    fault = find_faults(FUNCTION)[0]
    for number in (1, 2):
        Ledger(tmp_path / "results.json").add(Result("seed", number, "a.c", fault, "killed", "a case"))
    assert Ledger(tmp_path / "results.json").numbers("seed") == {1, 2}


def test_later_result_replaces_an_older_one(tmp_path):
    ledger = Ledger(tmp_path / "results.json")
    for verdict in ("survived", "killed"):
        ledger.add(Result("seed", 1, "a.c", find_faults(FUNCTION)[0], verdict))
    assert ledger.summary() == "1 faults: 1 killed; 1 of 1 noticed"


def test_judged_fault_has_its_reason(tmp_path):
    (tmp_path / "judged.toml").write_text(
        '[[equivalent]]\nfile = "a.c"\ntext = "x = 1;"\ncolumn = 4\nbefore = "1"\nafter = "2"\n'
        'reason = "x is not read"\n'
    )
    fault = Fault("constant", 4, 5, "1", "2", 9, "x = 1;", 4)
    assert Judged(tmp_path / "judged.toml").reason("a.c", fault) == "x is not read"


def test_judged_faults_are_still_in_the_sources():
    for file, *fault in Judged().entries():
        faults = [[f.text, f.column, f.before, f.after] for f in find_faults((ROOT / file).read_bytes())]
        assert fault in faults, f"{file}: {fault} is gone; drop the entry"


def test_trial_without_a_fault_runs_the_cases_before_the_one_that_failed(tmp_path):
    package = pytest.importorskip("timberframe_cpu")
    trial = Trial("cpu", Path(package.__file__).parent.parent, frozenset(), (), True)
    third = [case.id for case in trial.cases(open_target(Options("cpu")))][2]
    result, ended = in_child(replace(trial, last=third), tmp_path / "log", 300)
    assert (result["cases"], ended) == (3, "")


def on_opencl(function, folder):
    """Returns the function's result in a process of its own: drivers do not outlive a fork."""
    log = folder / "log"
    result, ended = in_child(function, log, 300)
    if "NoSuchDeviceError" in log.read_text():
        pytest.skip("no OpenCL driver is installed")
    assert ended == ""
    return result


def test_source_that_a_driver_refuses_is_distinguished_from_a_wrong_result(tmp_path):
    headers = tmp_path / "include"
    shutil.copytree(ROOT / HEADERS, headers)
    (headers / "timberframe/accelerator/move.h").write_text("#error broken\n")
    result = on_opencl(Trial("opencl", headers, frozenset({"Transpose/float32,int32"}), ()), tmp_path)
    assert refused(result)


def test_ops_that_share_a_source_all_use_its_headers(tmp_path):
    ops = [registry.get(name) for name in ("ConjugateTranspose", "Transpose")]
    users = on_opencl(lambda: record_ops("opencl", ROOT / HEADERS, ops), tmp_path)["timberframe/accelerator/move.h"]
    assert {"ConjugateTranspose/float32,int32", "Transpose/float32,int32"} <= set(users)


def test_child_returns_its_result(tmp_path):
    assert in_child(lambda: {"by": "case"}, tmp_path / "log", 60) == ({"by": "case"}, "")


def test_child_that_hangs_is_ended(tmp_path):
    def hang() -> None:
        while True:
            pass

    assert in_child(hang, tmp_path / "log", 0.5) == (None, "timeout after 0 s")


def test_child_that_crashes_names_its_signal(tmp_path):
    import ctypes

    assert in_child(lambda: ctypes.string_at(8, 1), tmp_path / "log", 60) == (None, "signal SIGSEGV")
