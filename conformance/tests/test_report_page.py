"""The page of reports: what it is made of, and that a browser shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.reports.html import html
from timberframe_conformance.reports.merge import load_all, merged
from timberframe_conformance.reports.summary import Run

OPS = ("Tanh", "Relu", "MatMul", "Conv2D")
DTYPES = ("float32", "float64", "int32")
BENCH = {
    "device": "/device:ACME:0", "environment": {"cores": 2, "processor": "p"},
    "peaks": {"multiply_add": 1e11, "matmul": 9e10, "copy": 1e11, "copy_memory": 2e10, "given": None,
              "of_the_device": True},
    "measurements": [
        {"name": f"matmul {n}", "side": side, "seconds": n**3 / rate, "flops": 2.0 * n**3, "bytes": 12.0 * n * n}
        for n in (64, 256) for side, rate in (("device", 2e10), ("numpy", 1e10))
    ],
}  # fmt: skip


def device(spec: str, model: str = "One") -> dict[str, Any]:
    return {"spec": spec, "vendor": "Acme", "model": model, "driver": "", "dtypes": ["float32"], "unsupported_ops": {}}


def results(count: int = 24, failing: Sequence[int] = ()) -> list[Result]:
    found = []
    for i in range(count):
        op, dtype = OPS[i % 4], DTYPES[i // 4 % 3]
        r = Result(f"forward/{op}/{dtype}/{i}x3#{i}", "forward", op, {"T": dtype}, "pass", max_ulp=i % 7 / 4, limit=2.0)
        if i in failing:
            r.verdict, r.message, r.cause = "fail", f"<b>{op}</b> is </script> wrong", op
            r.repro = f"conformance repro --device=acme '{r.id}'"
        found.append(r)
    return found


def run(spec: str, date: str, failing: Sequence[int] = (), **more: Any) -> Run:
    return Run(device(spec), {"date": date}, results(failing=failing), 1.0, level="breadth", **more)


@pytest.fixture
def runs() -> list[Run]:
    return [
        run("/device:ACME:0", "2026-01-01T00:00:00", failing=(0, 4, 5)),
        run("/device:ACME:0", "2026-02-01T00:00:00", failing=(0, 4)),
        run("/device:CPU:0", "2026-02-01T00:00:00"),
    ]


def data_of(page: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_devices_are_side_by_side_in_their_newest_runs(runs: list[Run]) -> None:
    data = merged(runs)
    assert [(r["name"], r["counts"]["fail"]) for r in data["runs"]] == [("ACME:0", 2), ("CPU:0", 0)]


def test_a_newer_run_of_a_part_of_the_suite_hides_no_whole_one(runs: list[Run]) -> None:
    part = run("/device:ACME:0", "2026-03-01T00:00:00", partial=True)
    acme = merged([part, *runs])["runs"][0]
    assert acme["environment"]["date"] == "2026-02-01T00:00:00"


def test_two_devices_of_one_name_are_named_with_their_models(runs: list[Run]) -> None:
    runs[1].device = device("/device:ACME:0", "Two")
    assert [r["name"] for r in merged(runs[:2])["runs"]] == ["ACME:0 One", "ACME:0 Two"]


def test_history_says_what_changed_since_the_run_before(runs: list[Run]) -> None:
    acme = merged(runs)["history"][0]
    assert [p["counts"]["fail"] for p in acme["points"]] == [3, 2]
    assert acme["points"][1]["labels"] == {"FIX": 1}


def test_failures_are_grouped_by_cause_with_message_and_repro(runs: list[Run]) -> None:
    (group,) = merged(runs)["runs"][0]["failures"]
    assert (group["message"], len(group["cases"])) == ("<b>Tanh</b> is </script> wrong", 2)
    assert group["repro"].startswith("conformance repro")


def test_a_case_that_one_device_did_not_run_is_absent_there(runs: list[Run]) -> None:
    runs[2].results = runs[2].results[:3]
    assert merged(runs)["runs"][1]["verdict"] == "000" + "-" * 21


def test_the_page_asks_for_nothing_and_texts_of_cases_stay_texts(runs: list[Run]) -> None:
    page = html(runs)
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "<b>Tanh" not in page
    assert data_of(page)["runs"][0]["failures"][0]["message"] == "<b>Tanh</b> is </script> wrong"


def test_benches_are_told_from_runs(runs: list[Run], tmp_path: Path) -> None:
    paths = [tmp_path / "run.json", tmp_path / "bench.json"]
    paths[0].write_text(runs[0].to_json())
    paths[1].write_text(json.dumps(BENCH))
    found, benches = load_all(paths)
    assert ([r.device["spec"] for r in found], benches) == (["/device:ACME:0"], [BENCH])


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("nothing")
    with pytest.raises(ValueError, match=r"x\.json: .*; JSON is required"):
        load_all([path])


SHOWN = "[...document.querySelectorAll('#{}-content tbody th')].map((e) => e.textContent)"


def choose(browser: Any, name: str, value: str) -> None:
    """Gives a filter a value, as a user does."""
    browser.evaluate(
        f"(() => {{ const e = document.getElementById('{name}'); e.value = {json.dumps(value)};"
        " e.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    browser.settle()


@pytest.fixture
def opened(browser: Any, runs: list[Run], tmp_path: Path) -> Any:
    """The page in a window high enough for all sections."""
    page = tmp_path / "page.html"
    page.write_text(html(runs, [BENCH]), encoding="utf-8")
    browser.open(page, height=8000)
    return browser


@pytest.mark.slow
def test_the_page_opens_without_an_error_or_a_request(opened: Any) -> None:
    assert opened.errors == []
    assert opened.evaluate(SHOWN.format("matrix")) == sorted(OPS)


@pytest.mark.slow
def test_search_and_filters_select_ops_failures_and_cases(opened: Any) -> None:
    choose(opened, "search", "tanh float32")
    assert opened.evaluate(SHOWN.format("matrix")) == ["Tanh"]
    assert opened.evaluate("document.getElementById('count').textContent") == "2 of 24 cases"
    choose(opened, "search", "")
    choose(opened, "verdict", "failing")
    assert opened.evaluate(SHOWN.format("matrix")) == ["Tanh"]
    assert "2 failing cases for 1 cause" in opened.evaluate("document.getElementById('failures-content').textContent")
    choose(opened, "device", "1")
    assert "None in this selection" in opened.evaluate("document.getElementById('failures-content').textContent")
    assert opened.errors == []


@pytest.fixture
def small(browser: Any, tmp_path: Path) -> Any:
    """Returns the page of a device with two of four ops, and with one of two networks right."""
    found = results()
    for r in found:
        if r.op in OPS[2:] or (r.op == "Tanh" and r.id.endswith("0x3#0")):
            r.verdict = "unsupported"
    for name, verdict in (("LeNet", "pass"), ("MLP", "fail")):
        found.append(Result(f"networks/Model/float32/{name}", "networks", "Model", {"T": "float32"}, verdict,
                            level="core", networks=(name,)))  # fmt: skip
    acme = {**device("/device:ACME:0"), "driver": "0.9"}
    page = tmp_path / "page.html"
    page.write_text(html([Run(acme, {}, found, 1.0, level="breadth")]), encoding="utf-8")
    browser.open(page, height=8000)
    return browser


def test_the_networks_of_a_level_are_known() -> None:
    network = Result("networks/Model/float32/MLP", "networks", "Model", {"T": "float32"}, "pass", level="core")
    network.networks = ("MLP",)
    run = Run(device("/device:ACME:0"), {}, [network], 1.0, level="core")
    assert merged([run])["networks"] == {"core": [{"name": "MLP", "case": 0}]}


@pytest.mark.slow
def test_levels_say_which_networks_run_right(small: Any) -> None:
    first = "document.querySelector('#levels-content tbody tr')"
    head, cell = small.evaluate(f"[...{first}.children].map((e) => e.textContent)")
    assert "LeNet, MLP" in head
    assert "1 of 2 networks run right" in cell
    assert "MLP: fail" in cell


@pytest.mark.slow
def test_the_table_of_ops_has_those_of_the_device_until_all_are_asked_for(small: Any) -> None:
    assert small.evaluate(SHOWN.format("matrix")) == ["Model", "Relu", "Tanh"]
    text = small.evaluate("document.getElementById('matrix-content').textContent")
    assert "ACME:0: 3 of 5 ops, 7 of 13 pairs of op and dtypes" in text
    small.evaluate("document.getElementById('without-kernel').click()")
    assert small.evaluate(SHOWN.format("matrix")) == sorted([*OPS, "Model"])


@pytest.mark.slow
def test_a_cell_has_the_colour_of_what_ran(small: Any) -> None:
    tanh = "[...document.querySelectorAll('#matrix-content tbody tr')].at(-1).querySelector('.cell .v')"
    assert small.evaluate(f"[{tanh}.className, {tanh}.textContent]") == ["v v0", "1/2"]


@pytest.mark.slow
def test_vendor_model_and_driver_are_apart(small: Any) -> None:
    shown = small.evaluate(
        "[...document.querySelectorAll('#devices-content tbody tr > *')].slice(0, 4).map((e) => e.textContent)"
    )
    assert shown == ["ACME:0", "Acme", "One", "0.9"]


@pytest.mark.slow
def test_a_column_sorts_and_says_so(opened: Any) -> None:
    head = "document.querySelector('#accuracy-content th:nth-child(1)')"
    opened.evaluate(f"{head}.querySelector('button').click()")
    assert opened.evaluate(f"{head}.getAttribute('aria-sort')") == "ascending"
    ops = opened.evaluate(SHOWN.format("accuracy"))
    assert ops == sorted(ops)


@pytest.mark.slow
def test_the_chart_of_accuracy_leaves_out_what_is_rounded_correctly(opened: Any) -> None:
    tips = opened.evaluate("[...document.querySelectorAll('#accuracy-content [data-tip]')].map((e) => e.dataset.tip)")
    errors = [float(re.search(r"\n([\d.]+) ULP of at most 2$", tip)[1]) for tip in tips]
    assert errors
    assert min(errors) > 0.5
    choose(opened, "search", f"{OPS[0]} {DTYPES[0]} 0x3")
    assert "All results of the selection are rounded correctly" in opened.evaluate(
        "document.getElementById('accuracy-content').textContent"
    )


@pytest.mark.slow
def test_a_cell_leads_to_its_cases(opened: Any) -> None:
    opened.evaluate("document.querySelector('#matrix-content .cell').click()")
    opened.settle()
    found = opened.evaluate(SHOWN.format("cases"))
    assert found
    assert all(case.startswith("forward/Conv2D/float32/") for case in found)


@pytest.mark.slow
def test_the_first_screen_names_networks_ops_and_speed(browser: Any, tmp_path: Path) -> None:
    found = [
        *results(12),
        Result("networks/Model/float32/LeNet", "networks", "Model", {"T": "float32"}, "pass", level="core"),
    ]
    found[1].verdict = found[5].verdict = found[9].verdict = "unsupported"  # Relu has no kernel
    found[4].verdict = "unsupported"  # Tanh has one for two of its three dtypes
    page = tmp_path / "page.html"
    page.write_text(html([Run(device("/device:ACME:0"), {}, found, 1.0)], [BENCH]), encoding="utf-8")
    browser.open(page, height=8000)
    texts = [browser.evaluate(f"document.getElementById('{name}-content').innerText") for name in ("devices", "levels")]
    heads = browser.evaluate("[...document.querySelectorAll('#devices-content th')].map((e) => e.textContent)")
    assert texts[0].split("\n")[-1].split("\t")[heads.index("Ops")].strip() == "3"
    assert "LeNet" in texts[1]
    assert "2.00 times as fast as numpy (2)" in texts[1]


@pytest.mark.slow
def test_one_unsupported_case_leaves_the_colour_of_a_cell(browser: Any, tmp_path: Path) -> None:
    found = results(24)
    found[0].verdict = "unsupported"
    page = tmp_path / "page.html"
    page.write_text(html([Run(device("/device:ACME:0"), {}, found, 1.0)]), encoding="utf-8")
    browser.open(page, height=6000)
    row = "[...document.querySelectorAll('#matrix-content tbody tr')].find((r) => r.innerText.startsWith('Tanh'))"
    cell = f"{row}.querySelector('.cell .v')"
    assert browser.evaluate(f"[{cell}.textContent, {cell}.className]") == ["1/2", "v v0"]


@pytest.mark.slow
def test_the_switch_changes_the_theme(opened: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    before = opened.evaluate(ground)
    opened.evaluate("document.getElementById('theme').click()")
    assert opened.evaluate(ground) != before


@pytest.mark.slow
def test_a_bench_is_drawn_against_peers_and_the_roofline(opened: Any) -> None:
    titles = opened.evaluate("[...document.querySelectorAll('#speed-content figure h3')].map((e) => e.textContent)")
    assert titles == ["/device:ACME:0 and others", "Roofline of /device:ACME:0", "matmul by size, /device:ACME:0"]


@pytest.mark.slow
def test_sixty_six_thousand_cases_open_in_two_seconds(browser: Any, tmp_path: Path) -> None:
    found = [
        Result(f"forward/Op{i % 420}/{DTYPES[i % 3]}/{i % 2203}x3-offset-dynamic#{i}", "forward", f"Op{i % 420}",
               {"T": DTYPES[i % 3]}, "pass", max_ulp=i % 7 / 4, limit=2.0, seconds=0.001)
        for i in range(66_000)
    ]  # fmt: skip
    page = tmp_path / "page.html"
    page.write_text(html([Run(device("/device:ACME:0"), {}, found, 1.0)]), encoding="utf-8")
    assert browser.open(page) < 2000
    assert browser.evaluate("document.getElementById('count').textContent") == "66,000 of 66,000 cases"


def two_cores(bench: dict[str, Any]) -> dict[str, Any]:
    """Returns the bench on twice as many cores, where everything takes half the time."""
    faster = [{**m, "seconds": m["seconds"] / 2} for m in bench["measurements"]]
    return {**bench, "environment": {**bench["environment"], "cores": 4}, "measurements": faster}


MODELS = {
    "device": "/device:ACME:0", "environment": {"cores": 2, "processor": "other"}, "method": {"threads": 2},
    "rows": [
        {"name": "LeNet", "batch": batch, "times": {"device": {"median": t}, "numpy": {"median": 2 * t}}}
        for batch, t in ((1, 1e-3), (8, 4e-3))
    ],
}  # fmt: skip
TITLES = "[...document.querySelectorAll('figure h3')].map((e) => e.textContent)"


@pytest.mark.slow
def test_benches_alone_are_a_page_with_roofline_and_scaling(browser: Any, command: Any, tmp_path: Path) -> None:
    benches = {"one": BENCH, "two": two_cores(BENCH), "models": MODELS}
    for name, content in benches.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    page = tmp_path / "page.html"
    assert command("report", *(str(tmp_path / f"{n}.json") for n in benches), f"--html={page}")[0] == 0
    browser.open(page, height=6000)
    titles = browser.evaluate(TITLES)
    assert browser.errors == []
    assert {"Roofline of /device:ACME:0", "Batches, /device:ACME:0", "Cores, /device:ACME:0"} <= set(titles)
    tips = browser.evaluate("[...document.querySelectorAll('[data-tip]')].map((e) => e.dataset.tip)")
    assert any(tip.startswith("LeNet, device\nbatch 1: 1,000 a second\nbatch 8: 2,000 a second") for tip in tips)


def test_a_folder_of_a_submission_is_its_report_and_bench(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(runs[0].to_json())
    (tmp_path / "bench.json").write_text(json.dumps(BENCH))
    (tmp_path / "submission.json").write_text("{}")
    found, benches = load_all([tmp_path])
    assert ([r.device["spec"] for r in found], benches) == (["/device:ACME:0"], [BENCH])


def test_a_page_is_made_of_cases_whose_limit_is_no_number() -> None:
    """Of an empty mean every result is right."""
    result = Result("forward/Mean/float32/0x3#12", "forward", "Mean", {"T": "float32"}, "pass", level="core")
    result.max_ulp, result.limit = float("nan"), float("inf")
    device = {"spec": "/device:ACME:0", "vendor": "", "model": "", "driver": "", "dtypes": [], "unsupported_ops": {}}
    run = Run(device, {"date": "2026-02-03T00:00:00"}, [result], 1.0, level="core")
    assert merged([run])["runs"][0]["limit"] == [None]
    assert html([run]).startswith("<!doctype html>")
