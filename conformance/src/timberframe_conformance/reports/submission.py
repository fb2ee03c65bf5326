"""What a vendor publishes of a run: a folder that others can verify.

`report.json` is what `run --json` writes: results, environment, versions of plugins, version and hash of the suite, and
what the profile declares. Beside it are the profile, figures of `bench --json` where there are any, and the SHA-256 of
each file in `submission.json`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from timberframe_conformance import SUITE_VERSION
from timberframe_conformance.profile import Profile, load_profile
from timberframe_conformance.reports.environment import suite_hash
from timberframe_conformance.reports.summary import Run, load_run

REPORT, PROFILE, BENCH, MANIFEST = "report.json", "profile.toml", "bench.json", "submission.json"


def write_submission(folder: Path, run: Run, profile: Path | None = None, bench: Path | None = None) -> None:
    """Writes a run's submission into a folder that is there, in place of what an earlier one left."""
    files = {REPORT: run.to_json().encode()}
    files.update((name, path.read_bytes()) for name, path in ((PROFILE, profile), (BENCH, bench)) if path)
    for name in (REPORT, PROFILE, BENCH, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    (folder / MANIFEST).write_text(json.dumps({"sha256": digests}, indent=2) + "\n")


def load_submission(folder: Path) -> tuple[Run, list[str]]:
    """Returns the run of a submission, and all that is wrong with it.

    OSError, ValueError for a folder that has none.
    """
    digests = json.loads((folder / MANIFEST).read_text()).get("sha256", {})
    run = load_run(folder / REPORT)
    profile = load_profile(folder / PROFILE if (folder / PROFILE).exists() else None)
    return run, [*_files(folder, digests), *_suite(run), *_numbers(folder, run), *_profile(run, profile)]


def _files(folder: Path, digests: Mapping[str, str]) -> Iterator[str]:
    for name in (REPORT, PROFILE, BENCH):
        path, wanted = folder / name, digests.get(name)
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        if found != wanted:
            what = "is missing" if found is None else "is not listed" if wanted is None else "was changed"
            yield f"{name} {what}; the file that {MANIFEST} lists is required"


def _suite(run: Run) -> Iterator[str]:
    found = run.suite_version, run.environment.get("suite_hash", "")
    here = SUITE_VERSION, suite_hash()
    if found != here:
        yield "suite {} of hash {} was run; {} of hash {} is required, which verifies it".format(*found, *here)
    if run.partial:
        yield "a part of the suite was run; all cases of a level are required"


def _numbers(folder: Path, run: Run) -> Iterator[str]:
    given, counted = json.loads((folder / REPORT).read_text()), json.loads(run.to_json())
    for part in ("summary", "levels"):
        for name, wanted in counted[part].items():
            if given[part].get(name) != wanted:
                yield f"{REPORT} has {part} {name} {given[part].get(name)!r}; its cases give {wanted!r}"
    for name, count in Counter(r.id for r in run.results).items():
        if count > 1:
            yield f"{name} is there {count} times; each case once is required"
    for r in run.results:
        if r.verdict == "pass" and r.max_ulp is not None and r.limit is not None and not r.max_ulp <= r.limit:
            yield f"{r.id} passes with an error of {r.max_ulp} ULP; at most its limit of {r.limit} is required"


def _profile(run: Run, profile: Profile) -> Iterator[str]:
    reported, published = _declared(run.profile), _declared(profile.as_dict())
    for name in sorted(reported.keys() | published.keys()):
        if reported.get(name) != published.get(name):
            yield f"{REPORT} has {name} {reported.get(name)!r}; {PROFILE} has {published.get(name)!r}"
    day = datetime.datetime.fromisoformat(run.environment["date"]).date()
    for r in run.results:
        if r.verdict == "waived" and profile.waiver(r.id, day) is None:
            yield f"{r.id} is waived; a waiver of {PROFILE} that covers it is required"


def _declared(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a report's profile without what the vendor's disk and today's date make of it."""
    tables = ("waivers", "tolerances")
    kept = {name: value for name, value in profile.items() if name not in (*tables, "path")}
    for name in tables:
        kept[name] = [{k: v for k, v in entry.items() if k != "expired"} for entry in profile.get(name, ())]
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]  # a dict, with lists for tuples
