"""The command `conformance`: run, verify, todo, list, repro, compare, report, bench, fuzz, hostile and mutants."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timberframe_conformance import todo
from timberframe_conformance.bench import command as bench
from timberframe_conformance.case import LEVELS, is_subject
from timberframe_conformance.commands import (
    UsageError,
    add_device,
    device_options,
    duration,
    open_device,
    parse_share,
    require_folders,
    split_names,
    whole,
    worker_processes,
    writable,
)
from timberframe_conformance.fuzz import command as fuzz
from timberframe_conformance.hostile import command as hostile
from timberframe_conformance.isolation.start import start_isolated
from timberframe_conformance.keyword import KeywordError, compile_keyword
from timberframe_conformance.mutants import command as mutants
from timberframe_conformance.options import DEFAULT_TIMEOUT, Options
from timberframe_core.standard_output import run_command
from timberframe_core.wording import counted

if TYPE_CHECKING:
    from timberframe_conformance.reports.summary import Run
    from timberframe_conformance.target import Target

OK, FAILED, WRONG_CALL = 0, 1, 2
STOPPED = 128 + 2
"""The exit status that shells report of a program which Ctrl-C ended."""

_LARGE_COMMANDS = {
    "bench": ("measure a device against peers", bench.add_arguments),
    "fuzz": ("judge random graphs on a device, and thereby the framework around its kernels", fuzz.add_arguments),
    "hostile": ("look for damaged files that lead to more than an error", hostile.add_arguments),
    "mutants": ("prove that the suite catches known bugs", mutants.add_arguments),
    "todo": ("list what a device lacks for a level, and which networks need it", todo.add_arguments),
}
"""Commands that have modules of their own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 when nothing failed, 1 when something did, 2 for a wrong call or an absent device.

    STOPPED for a run that the user stopped, READER_LEFT if nobody reads the output to its end.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if arguments is None and getattr(options, "device", None):  # a program, which needs plugins
        start_isolated(getattr(options, "timeout", DEFAULT_TIMEOUT))
    try:
        return run_command(lambda: options.command(options, Console(soft_wrap=True, emoji=False)))
    except UsageError as e:
        print(f"conformance: {e}", file=sys.stderr)
        return WRONG_CALL


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conformance", description="Judges Timberframe devices.")
    commands = parser.add_subparsers(required=True, metavar="command")

    _add_run(commands.add_parser("run", help="run the suite on a device"))

    verify = commands.add_parser("verify", help="say whether a submission of `run --submit` is what it seems")
    verify.add_argument("folder", type=Path, metavar="DIR")
    verify.set_defaults(command=_verify)

    cases = commands.add_parser("list", help="print the ids of the cases")
    _selection(cases)
    cases.set_defaults(command=_list)

    repro = commands.add_parser("repro", help="print a script that shows one case")
    repro.add_argument("case", metavar="CASE")
    add_device(repro)
    repro.set_defaults(command=_repro)

    compare = commands.add_parser("compare", help="show what changed between two JSON reports")
    compare.add_argument("before", type=Path, metavar="A.json")
    compare.add_argument("after", type=Path, metavar="B.json")
    compare.set_defaults(command=_compare)

    _add_report(
        commands.add_parser("report", help="make a page of JSON reports and benches, or a summary or JUnit XML of one")
    )

    for name, (text, add_arguments) in _LARGE_COMMANDS.items():
        add_arguments(commands.add_parser(name, help=text))
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    _selection(run)
    run.add_argument(
        "--jobs",
        type=whole(0),
        metavar="N",
        help="worker processes (default: one a core; one for a device of another process)",
    )
    run.add_argument(
        "--require",
        choices=LEVELS,
        metavar="LEVEL",
        help="run this level; the status says whether it is reached",
    )
    run.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON (.json.xz: compressed)")
    run.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    run.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    run.add_argument("--submit", type=Path, metavar="DIR", help="write all that `verify` needs, to be published")
    run.add_argument("--bench", type=Path, metavar="FILE", help="of `bench --json`: figures to submit, too")
    run.add_argument("--mutant", default="", metavar="NAME", help="put a known bug into the device's kernels first")
    run.set_defaults(command=_run)


def _add_report(report: argparse.ArgumentParser) -> None:
    report.add_argument("files", type=Path, nargs="+", metavar="FILE.json", help="of `run --json` or `bench --json`")
    report.add_argument("--html", type=Path, metavar="FILE", help="write a page of all of them")
    report.add_argument("--markdown", type=Path, metavar="FILE", help="write a list of the devices")
    report.add_argument("--badges", type=Path, metavar="DIR", help="write a badge for each device and level, as SVG")
    report.add_argument("--junit", type=Path, metavar="FILE", help="of one report")
    report.set_defaults(command=_report)


def _selection(parser: argparse.ArgumentParser) -> None:
    add_device(parser)
    parser.add_argument("--level", choices=[*LEVELS, "all", "soak"], help="run it and those below (default: all)")
    parser.add_argument("--op", default="", metavar="A,B", help="only cases of these ops")
    parser.add_argument("--suite", default="", metavar="A,B", help="only these suites, or those of installed packages")
    parser.add_argument(
        "-k", dest="keyword", default="", metavar="EXPR", help="only ids that contain these texts (and, or, not)"
    )
    parser.add_argument(
        "--share", default="0/1", metavar="K/N", help="only the Kth of N shares of the ops, from 0; K may be 'commit'"
    )
    parser.add_argument("--timeout", type=duration, default=DEFAULT_TIMEOUT, metavar="S", help="seconds for one case")


def _options(given: argparse.Namespace) -> Options:
    from timberframe_conformance.collect import check_names  # late: the help needs no ops

    options = replace(
        device_options(given), level=given.level or "all", ops=split_names(given.op), suites=split_names(given.suite),
        timeout=given.timeout, keyword=given.keyword, share=parse_share(given.share),
    )  # fmt: skip
    check_names(options)
    try:
        compile_keyword(given.keyword or "x")
    except KeywordError as e:
        raise UsageError(str(e)) from e
    return options


def _run(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.mutants.catalogue import MUTANTS
    from timberframe_conformance.reports.submission import write_submission
    from timberframe_conformance.reports.summary import write_report
    from timberframe_conformance.reports.terminal import progress, summary
    from timberframe_conformance.runner import NoStartError, run

    options = _required(replace(_options(given), mutant=given.mutant), given)
    if given.mutant and given.mutant not in MUTANTS:
        raise UsageError(f"mutant {given.mutant!r} is not known; `conformance mutants --list` shows all")
    target = open_device(options)
    _check_outputs(options, given)
    try:
        with progress(console, target.spec) as update:
            done = run(target, options, jobs=worker_processes(given.jobs, target.url), progress=update)
    except NoStartError as e:
        raise UsageError(str(e)) from e
    if given.json:
        write_report(given.json, done)
    summary(console, done)  # before the pages, none of which may cost it
    _write(done, given)
    if given.submit and not done.not_run:
        write_submission(given.submit, done, Path(options.profile) if options.profile else None, given.bench)
    if done.not_run:
        return STOPPED
    if not done.results:
        raise UsageError(_why_none(options))
    untried = set(options.ops) - {r.op for r in done.results}
    if untried and (untried := untried - _of_graphs(target, options)):
        console.print(f"no case was selected of {', '.join(sorted(untried))}", highlight=False)
    if given.require:
        return OK if done.reaches(given.require) else FAILED
    return FAILED if done.failed else OK


def _of_graphs(target: Target, options: Options) -> set[str]:
    """Returns the ops of the graphs of all cases that the options ask for."""
    from timberframe_conformance.collect import collect

    return {op for case in collect(target, options) for op in case.of_graph}


def _check_outputs(options: Options, given: argparse.Namespace) -> None:
    """Refuses before the run what could not be written after it."""
    require_folders(given.json, given.html, given.junit)
    if given.bench and not given.submit:
        raise UsageError(f"--bench {given.bench} without --submit; figures are part of a submission")
    if given.bench and not given.bench.is_file():
        raise UsageError(f"--bench {given.bench}: there is no such file; one of `conformance bench --json` is required")
    if given.submit:
        if options.partial or options.mutant:
            raise UsageError("--submit with a part of the suite: leave out --op, --suite, -k, --share and --mutant")
        writable("--submit", given.submit)


def _verify(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.reports.submission import MANIFEST, PROFILE, REPORT, load_submission

    try:
        run, problems = load_submission(given.folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise UsageError(
            f"verify {given.folder}: {MANIFEST}, {REPORT} or {PROFILE} cannot be read: {e}; "
            "a folder of `conformance run --submit` is required"
        ) from e
    for problem in problems:
        console.print(f"[red]refused[/] {escape(problem)}", highlight=False)
    reached = [name for name, level in run.levels().items() if level["reached"]]
    level = f"{reached[-1]} reached" if reached else "no level reached"
    verdict = counted(len(problems), "problem") if problems else "verified"
    text = f"{given.folder}: {run.device['spec']}, {counted(len(run.results), 'case')}, {level}: {verdict}"
    console.print(escape(text), highlight=False)
    return FAILED if problems else OK


def _required(options: Options, given: argparse.Namespace) -> Options:
    """Returns the options with the level that is required, where one is."""
    if not given.require:
        return options
    level = given.level or given.require
    if options.partial or not replace(options, level=level).wants_level(given.require):
        raise UsageError(
            f"--require {given.require} with a part of the level: leave out --op, --suite, -k, --share and lower levels"
        )
    return replace(options, level=level)


def _why_none(options: Options) -> str:
    """Returns what to say where the options select no case."""
    from timberframe_core.ops.definition import registry

    ops = [registry.get(name) for name in options.ops if not is_subject(name)]
    without = [op.name for op in ops if not list(op.samples())]
    if not without:
        return "no case was selected; `conformance list` prints the cases"
    if all(op.on_host and op.reference is None for op in ops if op.name in without):
        required = "no device runs what only a host op carries out: tests of its own must judge it"
    else:
        required = "definitions must give `samples` to be judged"
    return (
        f"no case was selected: no samples, of which cases are made, are defined for {', '.join(without)}; {required}"
    )


def _write(run: Run, given: argparse.Namespace) -> None:
    from timberframe_conformance.reports.html import html
    from timberframe_conformance.reports.junit import junit

    if given.html:
        given.html.write_text(html([run]), encoding="utf-8")
    if given.junit:
        given.junit.write_text(junit(run))


def _list(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.collect import collect

    options = _options(given)
    for case in list(collect(open_device(options), options)):  # a command that starts again has printed nothing
        print(case.id)
    return OK


def _repro(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.collect import NoSuchCaseError, find_case
    from timberframe_conformance.isolation.recording import vendor_script
    from timberframe_conformance.repro import case_script

    options = device_options(given)
    target = open_device(options)
    try:
        case = find_case(target, given.case, options)
    except NoSuchCaseError as e:
        raise UsageError(str(e)) from e
    script = vendor_script(target, case, options)
    if script is None:
        script = case.script(target.spec) if case.script else case_script(case.id, options)
    print(script, end="")
    return OK


def _load(path: Path) -> Run:
    from timberframe_conformance.reports.summary import load_run

    try:
        return load_run(path)
    except (OSError, ValueError) as e:
        raise UsageError(f"report {path}: {e}") from e


def _compare(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.reports.compare import compare

    changes = compare(_load(given.before), _load(given.after))
    styles = {"REGRESSION": "red", "FIX": "green", "DIFFERENCE": "yellow"}
    for c in changes:
        detail = f" ({escape(c.detail)})" if c.detail else ""
        console.print(
            f"[{styles[c.label]}]{c.label}[/] {escape(c.case)}: {c.before} -> {c.after}{detail}", highlight=False
        )
    counts = {label: sum(c.label == label for c in changes) for label in styles}
    console.print(", ".join(f"{n} {label}" for label, n in counts.items()), highlight=False)
    return FAILED if counts["REGRESSION"] else OK


def _write_badges(folder: Path, runs: Sequence[Run]) -> None:
    """Writes a badge for each level of each device."""
    from timberframe_conformance.reports.badge import badge, badge_name
    from timberframe_conformance.reports.merge import newest

    folder = writable("--badges", folder)
    for run in newest(runs):
        for level in LEVELS:
            (folder / badge_name(run, level)).write_text(badge(run, level), encoding="utf-8")


def _report(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.reports.devices import devices_page
    from timberframe_conformance.reports.html import bench_html, html
    from timberframe_conformance.reports.junit import junit
    from timberframe_conformance.reports.merge import load_all
    from timberframe_conformance.reports.terminal import summary, waiting

    require_folders(given.html, given.junit, given.markdown)
    try:
        with waiting(console, 1.0) as update:
            runs, benches = load_all(given.files, lambda path: update(0.0, f"reading {path}"))
    except (OSError, ValueError) as e:
        raise UsageError(str(e)) from e
    if given.junit and len(runs) != 1:
        raise UsageError(f"--junit with {len(runs)} reports of runs; one is required")
    if not runs and (given.markdown or given.badges or not given.html):
        raise UsageError(f"{counted(len(benches), 'bench')} without a report of a run; --html alone is required")
    if given.html:
        given.html.write_text(html(runs, benches) if runs else bench_html(benches), encoding="utf-8")
    if given.junit:
        given.junit.write_text(junit(runs[0]))
    if given.markdown:
        badges = Path(relpath(given.badges, given.markdown.parent)).as_posix() if given.badges else ""
        given.markdown.write_text(devices_page(runs, badges), encoding="utf-8")
    if given.badges:
        _write_badges(given.badges, runs)
    if not (given.html or given.junit or given.markdown or given.badges):
        for run in runs:
            summary(console, run)
    return OK


if __name__ == "__main__":
    sys.exit(main())
