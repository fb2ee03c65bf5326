"""Pages in one file."""

from __future__ import annotations

import pytest

from timberframe_core.drawing.page import page


def test_title_and_data_cannot_end_their_elements() -> None:
    text = page("<i>", "<p>body</p>", {"x": "</script><b>"})
    assert "<title>&lt;i&gt;</title>" in text
    assert '{"x":"\\u003c/script>\\u003cb>"}' in text


def test_a_script_that_would_end_its_element_is_refused() -> None:
    with pytest.raises(ValueError, match="contains '</script', which would end it"):
        page("t", "", scripts=["x = '</script>'"])


def test_data_without_a_form_in_json_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page("t", "", float("nan"))
