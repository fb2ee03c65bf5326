"""tf.contrib.tfprof and tf.profiler: what they print and write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe.compat.programs import resolve

pytestmark = pytest.mark.usefixtures("graph")


def network() -> None:
    x = tf.placeholder(tf.float32, [1, 6, 6, 3], name="x")
    y = tf.nn.conv2d(x, tf.get_variable("DW", [3, 3, 3, 6]), [1, 2, 2, 1], "SAME", name="first")
    with tf.variable_scope("a"):
        tf.nn.conv2d(y, tf.get_variable("DW2", [2, 2, 6, 12]), [1, 2, 2, 1], "SAME", name="second")
        tf.get_variable("big", [100, 20], initializer=tf.zeros_initializer())
    tf.get_variable("s", [], initializer=tf.zeros_initializer())


def test_parameters_of_trainable_variables_are_written_in_tensorflows_words(tmp_path: Path) -> None:
    network()
    tf.get_variable("step", [], trainable=False)
    analyzer = tf.contrib.tfprof.model_analyzer
    options = dict(analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, dump_to_file=str(tmp_path / "model"))
    found = analyzer.print_model_analysis(tf.get_default_graph(), tfprof_options=options)
    assert found.total_parameters == 2451
    assert (tmp_path / "model").read_text().splitlines() == [  # as TensorFlow 2.21 writes them
        "_TFProfRoot (--/2.45k params)",
        "  DW (3x3x3x6, 162/162 params)",
        "  a (--/2.29k params)",
        "    a/DW2 (2x2x6x12, 288/288 params)",
        "    a/big (100x20, 2.00k/2.00k params)",
        "  s (1, 1/1 params)",
    ]


def test_parameters_are_printed_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    network()
    tf.contrib.tfprof.model_analyzer.print_model_analysis(tf.get_default_graph())
    assert "  s (1, 1/1 params)" in capsys.readouterr().out


def test_floating_operations_are_sorted_by_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    network()
    analyzer = tf.contrib.tfprof.model_analyzer
    options = dict(analyzer.FLOAT_OPS_OPTIONS, account_type_regexes=["Conv2D"])
    analyzer.print_model_analysis(tf.get_default_graph(), tfprof_options=options)
    assert capsys.readouterr().out.splitlines() == [  # with TensorFlow's numbers
        "_TFProfRoot (--/5.22k flops)",
        "  first (2.92k/2.92k flops)",
        "  a/second (2.30k/2.30k flops)",
    ]


def test_a_log_of_operations_has_their_work_types_and_lines(tmp_path: Path) -> None:
    network()
    tf.contrib.tfprof.tfprof_logger.write_op_log(tf.get_default_graph(), str(tmp_path))
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in log.log_entries}
    assert entries["first"].float_ops == 2916
    assert list(entries["DW"].types) == ["_trainable_variables"]
    trace = entries["first"].code_def.traces[0]
    assert log.id_to_string[trace.file_id] == __file__
    assert "first" in log.id_to_string[trace.line_id]


def test_a_log_without_lines_has_only_what_tells_something(tmp_path: Path) -> None:
    network()
    given = tf.profiler.OpLogProto()
    given.log_entries.add(name="first", types=["mine"], float_ops=7)
    tf.profiler.write_op_log(None, str(tmp_path), given, add_trace=False)
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in log.log_entries}
    assert (entries["first"].float_ops, list(entries["first"].types)) == (7, ["mine"])
    assert "x" not in entries


def test_types_of_a_log_choose_what_is_counted() -> None:
    network()
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="a/second", types=["mine"])
    options: Any = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.float_operation())
    settings = options.with_accounted_types(["mine"]).with_empty_output().build()
    assert tf.profiler.profile(op_log=log, options=settings).total_float_ops == 2304


@pytest.mark.parametrize(
    "name",
    [
        "contrib.tfprof.python.tools.tfprof.model_analyzer.print_model_analysis",
        "contrib.tfprof.tfprof_logger.write_op_log",
        "core.profiler.tfprof_log_pb2.OpLogProto",
        "python.profiler.option_builder.ProfileOptionBuilder",
    ],
)
def test_names_of_modules_are_there(name: str) -> None:
    assert resolve(name) is not None
