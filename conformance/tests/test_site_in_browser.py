"""The site that `make docs` builds, in a browser: it opens from files, without a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parents[2] / "docs/build/site"
PAGES = (
    "docs/README.html",
    "docs/use.html",
    "docs/performance.html",
    "docs/reference/ops/math.html",
    "docs/reference/api/tf.train.html",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; `make docs` does it"),
]


def wait(browser: Any, expression: str) -> Any:
    """Returns the value of an expression as soon as it is true."""
    end = time.monotonic() + 30
    while not (value := browser.evaluate(expression)):
        assert time.monotonic() < end, f"{expression} stays false"
        time.sleep(0.05)
    return value


def search(browser: Any, words: str) -> list[str]:
    """Returns where the results of a search lead, as the last two parts of each address."""
    browser.open(SITE / "docs/README.html")
    browser.evaluate(f"document.querySelector('.sidebar-search').value = {words!r}")
    form = "document.querySelector('.sidebar-search-container')"
    # Where submitting leads. A page that leaves by itself answers nothing meanwhile; navigate waits for the next one.
    address = browser.evaluate(f"{form}.action + '?' + new URLSearchParams(new FormData({form}))")
    browser.call("Page.navigate", url=address)
    links = wait(browser, "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)")
    return ["/".join(link.split("/")[-2:]) for link in links]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_an_error_or_a_request(browser: Any, page: str, dark: bool) -> None:
    browser.open(SITE / page, dark=dark)
    assert browser.errors == []


def test_pages_follow_the_scheme_of_the_system(browser: Any) -> None:
    light, dark = "", ""
    for scheme in (False, True):
        browser.open(SITE / PAGES[0], dark=scheme)
        light, dark = dark, browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark


@pytest.mark.parametrize("page", PAGES)
def test_a_narrow_page_does_not_scroll_sideways(browser: Any, page: str) -> None:
    browser.open(SITE / page, width=420)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 420


@pytest.mark.parametrize("page", ["docs/performance.html", "docs/reference/ops/math.html"])
def test_figures_and_dates_are_not_broken_into_lines(browser: Any, page: str) -> None:
    browser.open(SITE / page, width=420)
    figure = r"/^[\d.,]+( [mu]s|%)$|^[\d-]{10}$/"
    cells = f"[...document.querySelectorAll('td')].filter((cell) => {figure}.test(cell.innerText))"
    assert browser.evaluate(f"{cells}.length") > 20
    lines = f"{cells}.map((cell) => [...cell.querySelector('p').getClientRects()][0].height)"
    assert max(browser.evaluate(lines)) < 1.9 * min(browser.evaluate(lines))


def test_the_index_leads_to_the_first_page(browser: Any) -> None:
    browser.open(SITE / "index.html")
    assert wait(browser, "location.pathname.endsWith('/docs/README.html')")


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("Tanh", "ops/math.html#tanh"),
        ("AdamOptimizer", "api/tf.train.html#tf.train.AdamOptimizer"),
        ("adam optimizer", "api/tf.train.html#tf.train.AdamOptimizer"),
        ("soft placement", "docs/use.html#why-a-node-is-on-the-cpu"),
        ("how do I place ops on a device", "docs/start.html#place-ops-on-a-device"),
        ("choose a device", "docs/use.html#place-ops-on-devices"),
        ("accuracy of Tanh on OpenCL", "ops/math.html#tanh"),
        ("waiver", "docs/conformance.html#waive-a-failure"),
        ("how to waive failures", "docs/conformance.html#waive-a-failure"),
        ("why is a node on the CPU", "docs/start.html#why-is-a-node-on-the-cpu"),
        ("why did a node go to the CPU?", "docs/use.html#why-a-node-is-on-the-cpu"),
        ("run on GPU", "docs/start.html#run-on-a-gpu-or-another-accelerator"),
        ("load a checkpoint", "docs/use.html#save-and-restore-variables-and-models"),
        ("custom op", "docs/write-a-kernel.html"),
        ("add a kernel", "docs/write-a-kernel.html"),
        ("write kernels", "docs/write-a-kernel.html"),
    ],
)
def test_search_finds(browser: Any, words: str, page: str) -> None:
    found = search(browser, words)
    assert browser.errors == []
    assert any(link.startswith(page) for link in found[:5]), found[:20]


def test_a_search_for_what_no_page_has_says_so(browser: Any) -> None:
    browser.open(SITE / "search.html")
    browser.evaluate("show('zyzzyva')")
    summary = browser.evaluate("document.querySelector('#search-results .search-summary').textContent")
    assert summary == "Nothing found for “zyzzyva”."


def test_a_result_shows_the_words_where_they_are(browser: Any) -> None:
    search(browser, "expires waiver")
    marked = browser.evaluate("[...document.querySelectorAll('#search-results li mark')].map((m) => m.textContent)")
    assert {"expires", "waiver"} <= set(marked)


def test_the_accuracy_of_an_op_on_a_device_is_in_its_section(browser: Any) -> None:
    browser.open(SITE / "docs/reference/ops/math.html")
    rows = "[...document.querySelectorAll('#tanh tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    assert any(row[:2] == ["OPENCL", "float32"] and float(row[2]) > 0 for row in browser.evaluate(rows))
