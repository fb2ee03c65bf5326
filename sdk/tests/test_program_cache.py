"""Programs on disk: what is kept, and what of it is used. test_compiler_device.py has sessions that use them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import timberframe_sdk as sdk
from timberframe_sdk.program_cache import keep_file, kept_file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    return tmp_path / "source" / "programs"


def cache(*identity: str, **arguments: Any) -> sdk.ProgramCache:
    return sdk.ProgramCache("source", identity or ("driver 1",), **arguments)


def entry(folder: Path) -> Path:
    (file,) = folder.glob("*.program")
    return file


def test_what_was_put_is_found_by_another_process_of_the_same_driver() -> None:
    cache().put("abc", b"program")
    assert cache().get("abc") == b"program"
    assert cache().get("other") is None
    assert cache("driver 2").get("abc") is None


@pytest.mark.parametrize("damage", ["shorter", "longer", "changed", "empty", "other"])
def test_a_damaged_entry_is_not_used_and_is_written_again(folder: Path, damage: str) -> None:
    cache().put("abc", b"program")
    whole = entry(folder).read_bytes()
    changed = {
        "shorter": whole[:-1], "longer": whole + b"x", "changed": whole[:-1] + b"x", "empty": b"",
        "other": b"x" + whole[1:],
    }  # fmt: skip
    entry(folder).write_bytes(changed[damage])
    assert cache().get("abc") is None
    assert not list(folder.iterdir())
    cache().put("abc", b"program")
    assert cache().get("abc") == b"program"


def test_what_was_not_used_for_longest_makes_room(folder: Path) -> None:
    small = cache(most_bytes=3000)
    for i in range(3):
        small.put(str(i), bytes(900))
        for file in folder.iterdir():
            status = file.stat()
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))
    assert small.get("0") is not None  # used now
    small.put("3", bytes(900))
    assert [small.get(str(i)) is not None for i in range(4)] == [False, False, False, True]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no modes of folders")
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache().put("abc", b"program")
    folder.chmod(0o777)
    open_to_others = cache()
    assert open_to_others.get("abc") is None
    open_to_others.put("def", b"program")
    assert len(list(folder.iterdir())) == 1
    assert "others may write to" in caplog.text


def test_folders_are_made_for_their_user_alone(folder: Path) -> None:
    cache().put("abc", b"program")
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no modes of folders")
def test_files_in_a_folder_that_others_may_write_to_are_not_read_or_written(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    keep_file(folder / "one", b"1", 1000)
    assert (kept_file(folder / "one"), folder.stat().st_mode & 0o077) == (b"1", 0)
    folder.chmod(0o770)
    keep_file(folder / "two", b"2", 1000)
    assert (kept_file(folder / "one"), (folder / "two").exists()) == (None, False)
