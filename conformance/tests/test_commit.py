"""The share of a commit: the same for everybody who has it."""

import subprocess
from pathlib import Path

from timberframe_conformance.commit import commit_number


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *arguments], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout


def test_the_number_is_the_hash_of_the_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "First")
    assert f"{commit_number(tmp_path):040x}" == git(tmp_path, "rev-parse", "HEAD").strip()


def test_a_folder_without_a_commit_has_the_number_zero(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert commit_number(tmp_path) == 0
