"""Files both ways: graphs, SavedModels, checkpoints and records that one system writes and the other reads."""

from __future__ import annotations

from timberframe_conformance.fuzz.families.family import Drawer, Family, indented
from timberframe_conformance.fuzz.families.tapes import BINARY, UNARY

KINDS = ("graph", "saved", "saved", "checkpoint", "checkpoint", "meta", "frozen", "records", "gradient")


def draw(d: Drawer) -> str:
    """Returns a program with a function that writes and one that reads; what both show must be equal."""
    kind = d.choose(KINDS)
    if kind == "records":
        return _records(d)
    build = _build(d, kind)
    writes, reads = WRITERS[kind](d)
    feed = f"np.array({d.numbers((3,))}, np.float64)"
    lines = [f"feed = {feed}", "def build():", *indented([*build, "return x, y"])]
    lines += ["def write(folder):", *indented(["with tf.Graph().as_default():", *indented(writes)])]
    lines += ["def read(folder):", *indented(["with tf.Graph().as_default():", *indented(reads)])]
    return "\n".join(lines) + "\n"


def _build(d: Drawer, kind: str) -> list[str]:
    """Returns statements that build a graph of a placeholder x and variables, with the output y."""
    lines = ["x = tf.placeholder(tf.float64, [3], 'x')"]
    known = ["x"]
    for i in range(d.whole(0 if kind in ("graph", "frozen") else 1, 3)):
        dtype = d.choose(["float64", "float32", "int32", "int64", "bool", "float16"])
        shape = d.choose([(3,), (3,), (2, 3), ()])
        values = d.rng.integers(0, 2 if dtype == "bool" else 9, shape).tolist()
        name = f"part{i}/v{i}"
        extra = ", use_resource=True" if d.chance(0.7) else ""
        lines.append(
            f"v{i} = tf.get_variable('{name}', initializer=np.array({values}, np.{'bool_' if dtype == 'bool' else dtype}){extra})"
        )
        use = f"tf.cast(v{i}, tf.float64)"
        use = {(2, 3): f"tf.reduce_sum({use}, 0)", (): f"{use} * x"}.get(shape, use)
        lines.append(f"u{i} = {use} * 0.5")
        known.append(f"u{i}")
    for i in range(d.whole(1, 4)):
        a, b = d.choose(known), d.choose(known)
        text = (d.choose(UNARY) if d.chance(0.4) else d.choose(BINARY)).replace("N", "3").format(a, b)
        what = d.whole(0, 9)
        if what == 0:
            text = f"tf.cond(tf.reduce_sum({b}) > {d.number()}, lambda: {text}, lambda: {a} * 0.5)"
        elif what == 1:
            text = f"tf.while_loop(lambda i, u: i < {d.whole(0, 3)}, lambda i, u: (i + 1, tf.sin(u) + {b}), (0, {text}))[1]"
        elif what == 2:
            text = f"tf.map_fn(lambda r: r * 2.0, {text})"
        elif what == 3:
            text = f"tf.py_func(lambda q: q, [{text}], tf.float64)" if kind == "checkpoint" else text
            text = f"tf.reshape({text}, [3])"
        lines.append(f"t{i} = {text}")
        known.append(f"t{i}")
    if d.chance(0.25):
        rows = d.choose(
            [
                "tf.as_string(x)",
                "tf.strings.join([tf.as_string(x), '-'])",
                "tf.string_to_hash_bucket_fast(tf.as_string(x), 7)",
            ]
        )
        lines.append(f"extra = tf.identity({rows}, 'extra')")
    if kind == "gradient":
        lines.append(
            f"{known[-1]} = tf.add_n([tf.gradients({known[-1]}, x)[0] if tf.gradients({known[-1]}, x)[0] is not None else x, x])"
        )
    lines.append(f"y = tf.identity({known[-1]} + x * 0.25, 'y')")
    return lines


RUN = ["with tf.Session() as session:", "    session.run(tf.global_variables_initializer())"]
CHANGE = [
    "    for v in tf.global_variables():", "        if v.dtype.base_dtype != tf.bool:",
    "            session.run(v.assign(tf.cast(tf.cast(v, tf.float64) + 1.0, v.dtype.base_dtype)))",
]  # fmt: skip
"""Variables get other values than those that they begin with."""


def _graph(d: Drawer) -> tuple[list[str], list[str]]:
    write = ["build()", "graph = tf.get_default_graph()", *RUN, "    show('y', session.run('y:0', {'x:0': feed}))"]
    text = d.chance(0.3)
    write += [f"tf.train.write_graph(graph, folder, 'graph', as_text={text})"]
    read = ["message = tf.GraphDef()"]
    if text:
        write = [*write[:-1], "open(folder + '/graph', 'w').write(str(graph.as_graph_def()))"]
        read += [
            "from google.protobuf import text_format",
            "text_format.Parse(open(folder + '/graph').read(), message)",
        ]
    else:
        read += ["message.ParseFromString(open(folder + '/graph', 'rb').read())"]
    name = d.choose(["", "inner"])
    prefix = f"{name}/" if name else ""
    read += [f"tf.import_graph_def(message, name={name!r})", "with tf.Session() as session:"]
    read += [
        "    for op in tf.get_default_graph().get_operations():",
        "        if op.type in ('Assign', 'AssignVariableOp'):",
    ]
    read += ["            session.run(op)", f"    show('y', session.run('{prefix}y:0', {{'{prefix}x:0': feed}}))"]
    return write, read


def _saved(d: Drawer) -> tuple[list[str], list[str]]:
    write = ["x, y = build()", *RUN, *CHANGE, "    show('y', session.run(y, {x: feed}))"]
    simple = d.chance(0.4)
    if simple:
        write += ["    tf.saved_model.simple_save(session, folder + '/m', {'in': x}, {'out': y})"]
    else:
        write += ["    builder = tf.saved_model.Builder(folder + '/m')"]
        write += ["    signature = tf.saved_model.predict_signature_def({'in': x}, {'out': y})"]
        write += ["    builder.add_meta_graph_and_variables(session, ['serve'], {'serving_default': signature})"]
        write += [f"    builder.save(as_text={d.chance(0.3)})"]
    read = ["with tf.Session() as session:", "    loaded = tf.saved_model.load(session, ['serve'], folder + '/m')"]
    read += ["    signature = loaded.signature_def['serving_default']"]
    read += ["    names = signature.inputs['in'].name, signature.outputs['out'].name"]
    read += ["    show('y', session.run(names[1], {names[0]: feed}))", "    show('count', len(tf.global_variables()))"]
    write += ["    show('count', len(tf.global_variables()))"]
    return write, read


def _checkpoint(d: Drawer) -> tuple[list[str], list[str]]:
    options = d.choose(["", "", "sharded=True", "write_version=tf.train.SaverDef.V2", "max_to_keep=1"])
    step = d.choose(["", f", global_step={d.whole(0, 9)}"])
    write = ["x, y = build()", *RUN, *CHANGE, f"    tf.train.Saver({options}).save(session, folder + '/model'{step})"]
    write += ["    show('y', session.run(y, {x: feed}))", "    show('values', session.run(tf.global_variables()))"]
    read = ["x, y = build()", "path = tf.train.latest_checkpoint(folder)", "with tf.Session() as session:"]
    read += ["    tf.train.Saver().restore(session, path)", "    show('y', session.run(y, {x: feed}))"]
    read += ["    show('values', session.run(tf.global_variables()))"]
    if d.chance(0.5):
        names_of = "[[n.encode(), str(s).encode()] for n, s in tf.train.list_variables({p})]"
        write.append(f"    show('names', {names_of.format(p='tf.train.latest_checkpoint(folder)')})")
        read.append(f"    show('names', {names_of.format(p='path')})")
    return write, read


def _meta(d: Drawer) -> tuple[list[str], list[str]]:
    write = ["x, y = build()", "tf.add_to_collection('ends', x)", "tf.add_to_collection('ends', y)", *RUN, *CHANGE]
    write += ["    tf.train.Saver().save(session, folder + '/model')", "    show('y', session.run(y, {x: feed}))"]
    write += ["    show('names', [v.name.encode() for v in tf.trainable_variables()])"]
    read = [f"saver = tf.train.import_meta_graph(folder + '/model.meta', clear_devices={d.chance(0.5)})"]
    read += [
        "x, y = tf.get_collection('ends')",
        "with tf.Session() as session:",
        "    saver.restore(session, folder + '/model')",
    ]
    read += [
        "    show('y', session.run(y, {x: feed}))",
        "    show('names', [v.name.encode() for v in tf.trainable_variables()])",
    ]
    return write, read


def _frozen(d: Drawer) -> tuple[list[str], list[str]]:
    write = ["x, y = build()", *RUN, *CHANGE, "    show('y', session.run(y, {x: feed}))"]
    write += [
        "    frozen = tf.graph_util.convert_variables_to_constants(session, tf.get_default_graph().as_graph_def(), ['y'])"
    ]
    write += ["open(folder + '/frozen', 'wb').write(frozen.SerializeToString())"]
    read = ["message = tf.GraphDef.FromString(open(folder + '/frozen', 'rb').read())"]
    read += ["y, = tf.import_graph_def(message, {'x:0': tf.constant(feed)}, ['y:0'])", "with tf.Session() as session:"]
    read += ["    show('y', session.run(y))"]
    return write, read


WRITERS = {
    "graph": _graph,
    "saved": _saved,
    "checkpoint": _checkpoint,
    "meta": _meta,
    "frozen": _frozen,
    "gradient": _saved,
}


LISTS = {
    "tf.float32": "float_list=tf.train.FloatList(value=[k * 0.5, {0}])",
    "tf.int64": "int64_list=tf.train.Int64List(value=[k, {1}])",
    "tf.string": "bytes_list=tf.train.BytesList(value=[b'{1}', bytes([k, 255])])",
}
"""Features of a record with number k, by dtype."""

FORMS = "'f{0}': tf.FixedLenFeature([2], {1})", "'f{0}': tf.VarLenFeature({1})"


def _records(d: Drawer) -> str:
    """Records of Examples, which a dataset reads."""
    kinds = [d.choose(sorted(LISTS)) for _ in range(d.whole(1, 3))]
    lists = [LISTS[kind].format(d.number(-9.0, 9.0), d.whole(0, 99)) for kind in kinds]
    features = [f"'f{i}': tf.train.Feature({made})" for i, made in enumerate(lists)]
    specs = [d.choose(FORMS).format(i, kind) for i, kind in enumerate(kinds)]
    squeezed = d.choose(["", "GZIP", "ZLIB"])
    option = f"tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.{squeezed or 'NONE'})"
    count = d.whole(0, 4)
    lines = ["def write(folder):", f"    with tf.python_io.TFRecordWriter(folder + '/r', options={option}) as writer:"]
    lines += [
        f"        for k in range({count}):",
        f"            features = tf.train.Features(feature={{{', '.join(features)}}})",
    ]
    lines += ["            writer.write(tf.train.Example(features=features).SerializeToString())", "    shown(folder)"]
    lines += ["def read(folder):", "    shown(folder)", "def shown(folder):"]
    lines += [f"    records = tf.data.TFRecordDataset(folder + '/r', compression_type={squeezed!r})"]
    lines += [f"    parsed = records.map(lambda r: tf.parse_single_example(r, {{{', '.join(specs)}}}))"]
    lines += ["    show('elements', elements(parsed))"]
    return "\n".join(lines) + "\n"


FAMILY = Family(
    "round_trips",
    "files both ways: graphs, SavedModels, checkpoints, records",
    draw,
    parts=("write", "read"),
    share={"float64": 1e-9, "float32": 1e-5},
)
