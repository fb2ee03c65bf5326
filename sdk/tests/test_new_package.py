"""`timberframe-sdk new` writes complete packages; that they work is tested where the conformance suite is."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from timberframe_sdk.tools import new_package
from timberframe_sdk.tools.command import KINDS, main
from timberframe_sdk.tools.new_package import TEMPLATES, NewPackageError, create

LINES = 60
"""Most lines of device, allocator and registration, without the blank ones."""
PARTS = {"README.md", "pyproject.toml", "profile.toml", "src", "tests", ".github"}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_each_kind_is_a_package_in_the_tree() -> None:
    assert {p.name for p in TEMPLATES.iterdir() if p.is_dir() and p.name != "__pycache__"} == set(KINDS)


def test_a_package_has_all_parts(kind: str, tmp_path: Path) -> None:
    assert {p.name for p in create("tin", kind, tmp_path).iterdir()} >= PARTS


def test_ci_compares_with_the_last_run_although_cases_fail(kind: str, tmp_path: Path) -> None:
    """Status 1 says that cases failed; others, such as that of a wrong call, end the job."""
    job = (create("tin", kind, tmp_path) / ".github/workflows/conformance.yml").read_text()
    (command,) = re.findall(r"run: (conformance run .*)", job)
    _, _, after = command.partition("page.html")
    for status, ends in ((0, 0), (1, 0), (2, 1)):
        assert subprocess.run(["bash", "-ec", f"(exit {status}){after}"], check=False).returncode == ends
    assert job.index("conformance run") < job.index("conformance compare") < job.index("cache/save")


def test_the_module_of_the_entry_point_is_there(kind: str, tmp_path: Path) -> None:
    made = create("tin", kind, tmp_path)
    entry = tomllib.loads((made / "pyproject.toml").read_text())["project"]["entry-points"]["timberframe"]
    assert entry == {"tin": "timberframe_tin.device"}
    assert (made / "src" / "timberframe_tin" / "device.py").is_file()


def test_nothing_of_the_old_name_is_left(kind: str, tmp_path: Path) -> None:
    made = create("tin", kind, tmp_path)
    for path in made.rglob("*"):
        text = str(path.relative_to(made)) + (path.read_text() if path.is_file() else "")
        assert not re.search("acme", text, re.IGNORECASE), path


def test_sources_are_python_under_any_name(kind: str, tmp_path: Path) -> None:
    sources = list(create("x9", kind, tmp_path).rglob("*.py"))
    assert [path.name for path in sources if not is_python(path.read_text())] == []


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def test_device_allocator_and_registration_are_short(kind: str) -> None:
    (path,) = TEMPLATES.glob(f"{kind}/src/*/device.py")
    assert sum(bool(line.strip()) for line in path.read_text().splitlines()) <= LINES


def test_kernels_of_packages_compute_by_themselves(kind: str) -> None:
    """None asks the SDK's helpers for references, which would be a fallback and not a kernel."""
    for path in (TEMPLATES / kind).rglob("*.py"):
        assert not re.search(r"\breference_|\bcompute\(node|by_reference", path.read_text()), path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my-chip", "lower-case letters and digits are required"),
        ("Acme", "lower-case letters and digits are required"),
        ("9x", "a letter first"),
        ("cpu", "a part of Timberframe has it"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NewPackageError, match=why):
        create(name, "python", tmp_path)


def test_a_device_holds_the_dtypes_that_are_asked_for(tmp_path: Path) -> None:
    made = create("tin", "npu", tmp_path, ["bfloat16", "float32"])
    assert 'DTYPES = ("bfloat16", "float32")  #' in (made / "src/timberframe_tin/hardware.py").read_text()


def test_dtypes_that_kernels_cannot_compute_with_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NewPackageError, match=r"dtypes int3: must be of float16, bfloat16, .*int64"):
        create("tin", "npu", tmp_path, ["float32", "int3"])


def test_dtypes_are_refused_where_kernels_do_not_follow_them(tmp_path: Path) -> None:
    with pytest.raises(NewPackageError, match="dtypes can be chosen for kind npu"):
        create("tin", "c", tmp_path, ["float16"])
    assert list(tmp_path.iterdir()) == []


def test_what_working_on_a_template_leaves_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = ("__pycache__/a.pyc", ".pytest_cache/README.md", "x.egg-info/PKG-INFO", "build/a.o", "src/_native.so")
    for name in ("README.md", *left):
        path = tmp_path / "templates" / "python" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setattr(new_package, "TEMPLATES", tmp_path / "templates")
    assert [p.name for p in create("tin", "python", tmp_path).rglob("*") if p.is_file()] == ["README.md"]


def test_an_existing_folder_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "tin").mkdir()
    with pytest.raises(NewPackageError, match="exists; a new one is required"):
        create("tin", "python", tmp_path)


def test_the_command_lists_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tin", "--kind", "c"]) == 0
    assert "tin/csrc/native.c" in capsys.readouterr().out.splitlines()


def test_the_command_says_what_is_wrong_with_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "cpu"]) == 2
    assert capsys.readouterr().err == (
        "timberframe-sdk: name 'cpu': a part of Timberframe has it; a name of your own is required\n"
    )
