"""`conformance bench --models`: whole networks, or models of files, compared with TensorFlow and ONNX Runtime."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from timberframe_conformance.bench.models import catalogue, convolutions, files
from timberframe_conformance.bench.models.measure import QUICK, Effort, Row, measure
from timberframe_conformance.bench.models.profile import Profile, describe_peaks, peaks_of, profiled
from timberframe_conformance.bench.models.profile import show as show_profile
from timberframe_conformance.bench.models.report import INFERENCE, TRAINING, Results, markdown, show
from timberframe_conformance.bench.models.sides import ONNXRUNTIME, PEERS, Sides, installed
from timberframe_conformance.commands import UsageError, cores, split_names
from timberframe_conformance.reports.html import bench_html
from timberframe_conformance.reports.terminal import waiting

BATCHES = (1, 8)


def bench_models(given: argparse.Namespace, console: Console, target: Any, cleared: dict[str, str]) -> int:
    """Measures the models that the options select; status 1 when one failed."""
    if given.profile:
        return _profile_models(given, console, target, cleared)
    if given.convolutions:
        return _compare_convolutions(given, console, target, cleared)
    effort = QUICK if given.quick else Effort()
    results = Results(target.spec, given.threads or cores(), effort, cleared)
    batches = given.batch or ((1,) if given.quick or given.models else BATCHES)
    planned, absent = _planned(given, batches, target, results)
    for reason in absent:
        console.print(f"left out: {reason}", highlight=False)
    with waiting(console, len(planned)) as update:
        for i, (row, measured) in enumerate(planned):
            update(i, f"{row.name}, batch {row.batch}")
            results.rows.append(measured(row))
            if given.json:  # after each row, so that an interrupted run keeps its results
                given.json.write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    show(results, console)
    if given.html:
        given.html.write_text(bench_html([results.to_dict()]), encoding="utf-8")
    if given.markdown:
        given.markdown.write_text(markdown(results))
    return 1 if results.failed else 0


def _planned(
    given: argparse.Namespace, batches: Sequence[int], target: Any, results: Results
) -> tuple[list[tuple[Row, Callable[[Row], Row]]], list[str]]:
    """Returns the rows that the options select, each with what measures it, and why peers are left out."""
    wanted = None if given.vs is None else split_names(given.vs)
    if not given.models:
        peers, absent = installed(PEERS if wanted is None else wanted)
        measured = partial(_measured, target=target, results=results, peers=peers)
        return [(row, measured) for row in selected(given.keyword, batches)], absent
    rows = files.rows(given.models, batches)
    paths = [path for path in given.models for _ in batches]
    read = [files.read(path, target.spec, row.batch, given.sizes or {}) for path, row in zip(paths, rows, strict=True)]
    peers, absent = files.peers_of(read, wanted)
    found: list[tuple[Row, Callable[[Row], Row]]] = []
    for row, model in zip(rows, read, strict=True):
        found.append((row, partial(_measured_file, model=model, target=target, results=results, peers=peers)))
    return found, absent


def _profiled(given: argparse.Namespace, device: str) -> list[tuple[Row, Callable[[], catalogue.Model]]]:
    """Returns the rows that the options select, each with what makes its model."""
    batches = given.batch or (1,)
    if given.models:
        rows = files.rows(given.models, batches)
        paths = [path for path in given.models for _ in batches]
        return [
            (row, partial(_file_model, path, device, row.batch, given.sizes or {}))
            for path, row in zip(paths, rows, strict=True)
        ]
    return [
        (row, partial(catalogue.build, row.name, row.batch, device=device))
        if row.kind == INFERENCE
        else (row, partial(catalogue.build_training, row.name, device=device))
        for row in selected(given.keyword, batches)
    ]


def _file_model(path: Path, device: str, batch: int, sizes: Mapping[str, int]) -> catalogue.Model:
    return files.read(path, device, batch, sizes).model


def selected(keyword: str, batches: Sequence[int]) -> list[Row]:
    """Returns an empty row for each network and batch, and for each training step, that the text names.

    These are those of which a word begins with it, or, where none does, whose name contains it.
    """
    inference = [Row(name, batch, INFERENCE) for name in catalogue.names() for batch in batches]
    training = [Row(name, catalogue.training_batch(name), TRAINING) for name in catalogue.training_names()]
    every, text = inference + training, keyword.lower()
    rows = [row for row in every if f" {text}" in f" {row.name.lower()}"]
    rows = rows or [row for row in every if text in row.name.lower()]
    if not rows:
        known = ", ".join([*catalogue.names(), *catalogue.training_names()])
        raise UsageError(f"model {keyword!r} is not known; models are {known}")
    return rows


def _profile_models(given: argparse.Namespace, console: Console, target: Any, cleared: dict[str, str]) -> int:
    """Prints where the time of the selected models goes."""
    threads = given.threads or cores()
    figures = peaks_of(target, threads, cleared, given.peaks)
    rows = _profiled(given, target.spec)
    profiles: list[Profile] = []
    with waiting(console, len(rows)) as update:
        for i, (row, build) in enumerate(rows):
            update(i, f"{row.name}, batch {row.batch}")
            with Sides(target, threads) as sides:
                profiles.append(profiled(row.name, row.batch, row.kind, sides.device_call(build()), figures))
            show_profile(profiles[-1], console)
    console.print(describe_peaks(figures), highlight=False)
    if given.json:
        content = {**figures.to_dict(), "profiles": [profile.to_dict() for profile in profiles]}
        given.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0


def _compare_convolutions(given: argparse.Namespace, console: Console, target: Any, cleared: dict[str, str]) -> int:
    """Prints the convolutions of the selected networks beside ONNX Runtime."""
    _, absent = installed((ONNXRUNTIME,))
    if absent:
        raise UsageError(f"--convolutions: {absent[0]}; it compares with ONNX Runtime")
    threads = given.threads or cores()
    rows = [row for row in selected(given.keyword, given.batch or (1,)) if row.kind == INFERENCE]
    found: list[convolutions.Convolution] = []
    with waiting(console, len(rows)) as update:
        for i, row in enumerate(rows):
            update(i, f"{row.name}, batch {row.batch}")
            model = catalogue.build(row.name, row.batch, device=target.spec)
            with Sides(target, threads) as sides:
                made, lacking = convolutions.compare(model, sides.device_call(model), threads)
            convolutions.show(made, lacking, console)
            found += made
    if found:
        ratios = convolutions.described(convolutions.total(found))
        console.print(f"all: {ratios}, {threads} thread(s)", highlight=False)
    if given.json:
        about = Results(target.spec, threads, QUICK, cleared).to_dict()["environment"]
        content = {"environment": about, "threads": threads, "rows": [convolutions.to_dict(r) for r in found]}
        given.json.write_text(json.dumps(content, indent=1) + "\n")
    if given.markdown:
        given.markdown.write_text(convolutions.markdown(found))
    return 0


def _measured(row: Row, target: Any, results: Results, peers: Sequence[str]) -> Row:
    with Sides(target, results.threads) as sides:
        if row.kind == INFERENCE:
            return measure(row, sides.inference(row.name, row.batch, peers), results.effort)
        model = catalogue.build_training(row.name, device=target.spec)
        return measure(row, sides.training(model, peers), results.effort)


def _measured_file(row: Row, model: files.FileModel, target: Any, results: Results, peers: Sequence[str]) -> Row:
    with Sides(target, results.threads) as sides:
        return measure(row, files.openers(model, sides, peers), results.effort)
