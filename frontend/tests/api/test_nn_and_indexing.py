"""What tf.nn and the indexing functions put into the graph."""

import pytest

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError


def test_conv2d_takes_one_stride_for_both_directions() -> None:
    y = tf.nn.conv2d(tf.zeros([1, 8, 8, 3]), tf.zeros([3, 3, 3, 4]), strides=2, padding="SAME")
    assert y.op.attrs["strides"] == (1, 2, 2, 1)
    assert y.static_shape == (1, 4, 4, 4)


def test_conv2d_padding_by_amounts_is_explicit() -> None:
    amounts = [[0, 0], [1, 2], [0, 1], [0, 0]]
    y = tf.nn.conv2d(tf.zeros([1, 8, 8, 3]), tf.zeros([3, 3, 3, 4]), [1, 1, 1, 1], amounts)
    assert (y.op.attrs["padding"], y.static_shape) == ("EXPLICIT", (1, 9, 7, 4))


def test_conv2d_needs_one_name_for_its_filter() -> None:
    with pytest.raises(InvalidArgumentError, match="both of filter and filters"):
        tf.nn.conv2d(tf.zeros([1, 8, 8, 3]), tf.zeros([1, 1, 3, 4]), 1, "SAME", filters=tf.zeros([1, 1, 3, 4]))


def test_separable_conv2d_mixes_channels_last() -> None:
    x, deep, point = tf.zeros([2, 8, 8, 3]), tf.zeros([3, 3, 3, 2]), tf.zeros([1, 1, 6, 5])
    assert tf.nn.separable_conv2d(x, deep, point, [1, 2, 2, 1], "SAME").static_shape == (2, 4, 4, 5)


def test_bias_add_understands_both_layouts() -> None:
    assert tf.nn.bias_add(tf.zeros([2, 3, 4]), tf.zeros([3]), "NC...").op.attrs["data_format"] == "NCHW"
    assert tf.nn.bias_add(tf.zeros([2, 3, 4]), tf.zeros([4]), "N...C").op.attrs["data_format"] == "NHWC"


def test_fused_batch_norm_outside_training_needs_statistics() -> None:
    with pytest.raises(InvalidArgumentError, match="mean or variance is not given"):
        tf.nn.fused_batch_norm(tf.zeros([1, 2, 2, 3]), tf.zeros([3]), tf.zeros([3]), is_training=False)


def test_moments_drop_the_axes() -> None:
    mean, variance = tf.nn.moments(tf.zeros([2, 3, 4]), [0, 2])
    assert (mean.static_shape, variance.static_shape) == ((3,), (3,))


def test_cross_entropy_of_higher_rank_has_the_outer_shape() -> None:
    labels = tf.zeros([2, 5], tf.int32)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.zeros([2, 5, 7]))
    assert loss.static_shape == (2, 5)


def test_gather_axis_defaults_to_the_end_of_the_batch() -> None:
    assert tf.gather(tf.zeros([2, 5, 3]), tf.zeros([2, 4], tf.int32), batch_dims=1).static_shape == (2, 4, 3)
    assert tf.batch_gather(tf.zeros([2, 5, 3]), tf.zeros([2, 4], tf.int32)).static_shape == (2, 4, 3)


def test_one_hot_takes_its_dtype_from_its_values() -> None:
    assert tf.one_hot([1], 3).dtype is tf.float32
    assert tf.one_hot([1], 3, dtype=tf.bool).dtype is tf.bool
    assert tf.one_hot([1], 3, on_value=tf.constant(2, tf.int64)).dtype is tf.int64


def test_boolean_mask_keeps_the_other_dimensions() -> None:
    assert tf.boolean_mask(tf.zeros([3, 4]), [True, False, True]).static_shape == (None, 4)


def test_results_with_several_parts_have_names() -> None:
    assert tf.nn.top_k(tf.zeros([4]), 2).indices.static_shape == (2,)
    assert tf.unique([1, 2]).idx.static_shape == (2,)
    assert tf.unique_with_counts([1, 2]).count.dtype is tf.int32


def test_sort_refuses_an_unknown_direction() -> None:
    with pytest.raises(InvalidArgumentError, match="direction is 'UP'"):
        tf.sort([1, 2], direction="UP")


def test_conv2d_transpose_has_the_shape_that_was_asked_for() -> None:
    y = tf.nn.conv2d_transpose(tf.zeros([1, 4, 4, 5]), tf.zeros([3, 3, 2, 5]), [1, 8, 8, 2], 2)
    assert (y.op.type, y.static_shape) == ("Conv2DBackpropInput", (1, 8, 8, 2))


def test_conv2d_transpose_says_which_size_is_negative() -> None:
    x = tf.placeholder(tf.float32, [None, 4, 4, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input_sizes is \[-1, 8, 8, 2\]; sizes of 0 or more"):
        tf.nn.conv2d_transpose(x, tf.zeros([3, 3, 2, 5]), [-1, 8, 8, 2], 2)


def test_conv2d_transpose_refuses_a_shape_that_does_not_convolve_to_the_input() -> None:
    with pytest.raises(InvalidArgumentError, match=r"out_backprop has shape \(1, 4, 4, 5\); it must have"):
        tf.nn.conv2d_transpose(tf.zeros([1, 4, 4, 5]), tf.zeros([3, 3, 2, 5]), [1, 9, 8, 2], 2)


def test_conv1d_understands_both_layouts() -> None:
    assert tf.nn.conv1d(tf.zeros([2, 8, 3]), tf.zeros([3, 3, 4]), 2, "SAME").static_shape == (2, 4, 4)
    first = tf.nn.conv1d(tf.zeros([2, 3, 8]), tf.zeros([3, 3, 4]), [1, 1, 2], "SAME", data_format="NCW")
    assert first.static_shape == (2, 4, 4)


def test_weighted_cross_entropy_needs_equal_shapes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"labels have shape \(3,\) and logits \(2,\)"):
        tf.nn.weighted_cross_entropy_with_logits(labels=tf.zeros([3]), logits=tf.zeros([2]), pos_weight=2.0)


def test_resized_images_have_the_size_that_was_asked_for() -> None:
    y = tf.image.resize_bilinear(tf.zeros([1, 4, 4, 5], tf.uint8), [8, 6])
    assert (y.static_shape, y.dtype) == ((1, 8, 6, 5), tf.float32)
    assert tf.image.resize_nearest_neighbor(tf.zeros([1, 4, 4, 5], tf.uint8), [8, 6]).dtype is tf.uint8


def test_windows_of_volumes_take_one_value_for_all_directions() -> None:
    x = tf.zeros([1, 4, 6, 8, 2])
    assert tf.nn.max_pool3d(x, 2, 2, "VALID").static_shape == (1, 2, 3, 4, 2)
    assert tf.nn.avg_pool3d(x, [1, 2, 1, 2, 1], 1, "SAME").op.attrs["ksize"] == (1, 2, 1, 2, 1)


def test_erosion_is_the_dilation_of_the_negative() -> None:
    y = tf.nn.erosion2d(tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2]), [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    assert (y.op.type, y.op.inputs[0].op.type) == ("Neg", "Dilation2D")


def test_conv3d_transpose_undoes_the_strides_of_conv3d() -> None:
    x, w = tf.zeros([1, 4, 6, 8, 2]), tf.zeros([3, 3, 3, 2, 5])
    y = tf.nn.conv3d(x, w, 2, "SAME")
    assert y.static_shape == (1, 2, 3, 4, 5)
    assert tf.nn.conv3d_transpose(y, w, [1, 4, 6, 8, 2], 2).static_shape == (1, 4, 6, 8, 2)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_sequence_mask_takes_a_limit_of_another_dtype(dtype: tf.DType) -> None:
    lengths = tf.constant([1, 3], tf.int32 if dtype == tf.int64 else tf.int64)
    with tf.Session() as session:
        assert session.run(tf.sequence_mask(lengths, tf.constant(3, dtype), tf.int32)).tolist() == [
            [1, 0, 0],
            [1, 1, 1],
        ]


CROSS_ENTROPIES = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]


@pytest.mark.parametrize("name", CROSS_ENTROPIES)
def test_cross_entropies_take_no_arguments_without_names(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: an argument is given without its name; labels= and logits= must"):
        getattr(tf.nn, name)(tf.zeros([2, 3]), tf.zeros([2, 3]))


@pytest.mark.parametrize("name", CROSS_ENTROPIES)
def test_cross_entropies_need_labels_and_logits(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: logits not given; both are required"):
        getattr(tf.nn, name)(labels=tf.zeros([2, 3]))


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint8, tf.bool, tf.float64])
@pytest.mark.parametrize("name", ["softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2"])
def test_softmax_cross_entropy_takes_labels_of_any_dtype(name, dtype) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        labels, logits, function = tf.cast([[0, 1], [1, 0]], dtype), [[1.0, 2.0], [3.0, 4.0]], getattr(tf.nn, name)
        loss, array_loss = function(labels=labels, logits=logits), function(labels=session.run(labels), logits=logits)
        assert loss.dtype is tf.float32
        assert session.run(loss).tolist() == pytest.approx([0.313262, 1.313262], abs=1e-6)
        assert session.run(array_loss).tolist() == session.run(loss).tolist()


@pytest.mark.parametrize("rows", [2, None])
def test_softmax_cross_entropy_takes_labels_of_more_dimensions(rows: int | None) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        labels = tf.placeholder(tf.float32, [1, rows, 2])
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=[[1.0, 2.0], [3.0, 4.0]])
        assert session.run(loss, {labels: [[[0, 1], [1, 0]]]}).tolist() == pytest.approx([0.313262, 1.313262], abs=1e-6)


@pytest.mark.parametrize("name", ["sigmoid_cross_entropy_with_logits", "weighted_cross_entropy_with_logits"])
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float64])
def test_labels_of_logistic_losses_have_the_dtype_of_the_logits(name, dtype) -> None:
    more = {"pos_weight": 2.0} if name.startswith("weighted") else {}
    said = rf"tf.nn.{name}: labels 'y:0' have dtype {dtype.name} and logits float32; .* tf.cast\(labels, tf.float32\)"
    with tf.Graph().as_default(), pytest.raises(TypeError, match=said):
        getattr(tf.nn, name)(labels=tf.constant([[0, 1]], dtype, name="y"), logits=[[1.0, 2.0]], **more)


@pytest.mark.parametrize(
    ("loss", "labels", "rule"),
    [
        ("sigmoid_cross_entropy_with_logits", [1, 3], "they must agree"),
        ("sparse_softmax_cross_entropy_with_logits", [2, 1], "labels must have the shape of logits without its last"),
    ],
)
def test_labels_whose_shape_does_not_suit_logits_are_refused(loss: str, labels: list[int], rule: str) -> None:
    shapes = rf"{loss}: labels have shape \({labels[0]}, {labels[1]}\) and logits \(2, 3\); {rule}"
    with pytest.raises(ValueError, match=shapes):
        getattr(tf.nn, loss)(
            labels=tf.zeros(labels, tf.int32 if "sparse" in loss else tf.float32), logits=tf.zeros([2, 3])
        )


def test_a_tensor_of_another_graph_is_named_beside_one_of_this() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1.0, name="x")
    message = "Add': input 'x:0' is of another graph than 'y:0'; all inputs must be"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.add(x, tf.constant(2.0, name="y"))


def test_cond_refuses_a_predicate_that_is_no_scalar() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"tf.cond: pred 'p:0' has shape \(2,\); a scalar"):
        tf.cond(tf.constant([True, False], name="p"), lambda: 1, lambda: 2)


def test_one_cell_where_a_list_is_required_is_refused() -> None:
    with pytest.raises(TypeError, match=r"MultiRNNCell: cells is .*; a list of cells is required"):
        tf.nn.rnn_cell.MultiRNNCell(tf.nn.rnn_cell.BasicLSTMCell(4))
