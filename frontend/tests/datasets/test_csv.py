"""CsvDataset and make_csv_dataset."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

TEXT = 'id,size,name,far\n1,0.5,"a,b",3\n2,,c,5000000000\n3,1.5,,4\n'


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "a.csv"
    file.write_text(TEXT)
    return str(file)


def elements(dataset: Any) -> list[Any]:
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found


def test_lines_are_tuples_of_fields(path: str) -> None:
    defaults = [tf.int32, [0.25], tf.string, [-1]]
    made = tf.data.experimental.CsvDataset([path, path], [tf.int32, [0.25], [""]], header=True, select_cols=[0, 1, 2])
    assert elements(made) == [(1, 0.5, b"a,b"), (2, 0.25, b"c"), (3, 1.5, b"")] * 2
    whole = tf.contrib.data.CsvDataset(path, defaults, header=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="field 3 is 5000000000; an int32 is required"):
        elements(whole)


def test_compressed_files_and_other_delimiters(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"1;NA\n2;7\n"))
    made = tf.data.experimental.CsvDataset(str(file), [[0], [9]], "GZIP", field_delim=";", na_value="NA")
    assert elements(made) == [(1, 9), (2, 7)]


def test_batches_by_names_with_dtypes_of_the_fields(path: str) -> None:
    made = tf.data.experimental.make_csv_dataset(path, 2, label_name="far", num_epochs=1, shuffle=False)
    types, label = tf.data.get_output_types(made)
    assert dict(types) == {"id": tf.int32, "size": tf.float32, "name": tf.string}
    assert label is tf.int64
    (first, labels), (last, _) = elements(made)
    np.testing.assert_array_equal(first["size"], [0.5, 0.0])
    assert (first["name"].tolist(), labels.tolist()) == ([b"a,b", b"c"], [3, 5000000000])
    assert last["id"].tolist() == [3]


def test_chosen_columns_in_the_order_of_the_file_for_ever(path: str) -> None:
    made = tf.data.experimental.make_csv_dataset(path, 2, select_columns=["name", 0], shuffle_seed=1)
    following = tf.data.make_one_shot_iterator(made).get_next()
    assert list(following) == ["id", "name"]
    with tf.Session() as session:
        seen = [i for _ in range(6) for i in session.run(following["id"]).tolist()]
    assert sorted(seen) == [1] * 4 + [2] * 4 + [3] * 4


def test_wrong_lines_are_left_out_where_asked(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n1,2\nx,2\n3,4\n")
    made = tf.data.experimental.make_csv_dataset(
        str(file), 5, column_defaults=[[0], [0]], num_epochs=1, shuffle=False, ignore_errors=True
    )
    assert elements(made)[0]["a"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_name": "no"}, r"label_name is 'no'; it must be one of \['id', 'size', 'name', 'far'\]"),
        ({"select_columns": ["no", 7]}, r"select_columns has \['no', 7\]"),
        ({"header": False}, "header is False and column_names is None"),
        ({"column_defaults": [[0]]}, "1 column_defaults are given for 4 columns"),
        ({"column_names": ["a", "a"]}, r"column names are \['a', 'a'\]; each must be there once"),
    ],
)
def test_wrong_arguments_are_refused(path: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.data.experimental.make_csv_dataset(path, 2, **arguments)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="no file matches"):
        tf.data.experimental.make_csv_dataset(str(tmp_path / "*.csv"), 2)
