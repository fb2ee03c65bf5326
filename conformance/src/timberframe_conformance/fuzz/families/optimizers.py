"""Optimizers: several steps with dense and sparse gradients, slots, schedules of the learning rate."""

from __future__ import annotations

from timberframe_conformance.fuzz.families.family import Drawer, Family, indented

OPTIMIZERS = {
    "GradientDescentOptimizer": (),
    "MomentumOptimizer": ("momentum=0.9", "momentum=0.5, use_nesterov=True"),
    "AdamOptimizer": ("", "beta1=0.8, beta2=0.95, epsilon=1e-3"),
    "AdagradOptimizer": ("", "initial_accumulator_value=0.5"),
    "AdadeltaOptimizer": ("", "rho=0.8, epsilon=1e-2"),
    "RMSPropOptimizer": ("", "decay=0.8, momentum=0.5", "centered=True, momentum=0.3, epsilon=1e-3"),
    "FtrlOptimizer": (
        "", "l1_regularization_strength=0.01, l2_regularization_strength=0.1", "learning_rate_power=-0.7",
        "l2_shrinkage_regularization_strength=0.1, initial_accumulator_value=0.3",
    ),
    "ProximalGradientDescentOptimizer": ("l1_regularization_strength=0.01, l2_regularization_strength=0.1",),
    "ProximalAdagradOptimizer": ("", "l1_regularization_strength=0.01, l2_regularization_strength=0.1"),
    "AdagradDAOptimizer": ("global_step=step", "global_step=step, l1_regularization_strength=0.01"),
}  # fmt: skip
"""Names with arguments to choose from."""

SCHEDULES = (
    "0.1", "0.01", "0.1", "tf.train.exponential_decay(0.1, step, 2, 0.7)",
    "tf.train.exponential_decay(0.1, step, 2, 0.7, staircase=True)",
    "tf.train.piecewise_constant(step, [1, 3], [0.2, 0.1, 0.05])", "tf.train.polynomial_decay(0.2, step, 4, 0.01, power=2.0)",
    "tf.train.polynomial_decay(0.2, step, 2, 0.01, cycle=True)", "tf.train.inverse_time_decay(0.2, step, 2, 0.5)",
    "tf.train.natural_exp_decay(0.2, step, 2, 0.5)", "tf.train.cosine_decay(0.2, step, 4, alpha=0.1)",
    "tf.train.cosine_decay_restarts(0.2, step, 2)", "tf.train.linear_cosine_decay(0.2, step, 4)",
    "tf.train.noisy_linear_cosine_decay(0.2, step, 4, initial_variance=0.0)",
)  # fmt: skip
"""Learning rates, of the step in graphs. (cosine and others need their step as a variable of the graph.)"""


def draw(d: Drawer) -> str:
    """Returns a program of either kind: gradients given as arrays and applied eagerly, or losses minimized in a session."""
    return _applied(d) if d.chance(0.5) else _minimized(d)


def _shapes(d: Drawer) -> list[tuple[int, ...]]:
    return [d.choose([(5, 2), (4,), (6, 1), (3, 2, 2)]) for _ in range(d.whole(1, 3))]


def _optimizer(d: Drawer, rate: str, without_step: bool = False) -> str:
    names = [n for n in OPTIMIZERS if not (without_step and n == "AdagradDAOptimizer")]
    name = d.choose(names)
    arguments = d.choose(OPTIMIZERS[name] or ("",))
    return f"tf.train.{name}({rate}{', ' + arguments if arguments else ''})"


def _applied(d: Drawer) -> str:
    """Gradients as arrays: dense, or rows that may be repeated, which change from step to step."""
    dtype = d.choose(["float32", "float32", "float64"])
    lines = []
    names = []
    shapes = _shapes(d)
    for shape in shapes:
        name = d.name("v")
        lines.append(f"{name} = tf.Variable(np.array({d.numbers(shape)}, np.{dtype}), use_resource=True)")
        names.append(name)
    lines.append(f"optimizer = {_optimizer(d, d.choose(['0.1', '0.02']), without_step=True)}")
    for _ in range(d.whole(1, 4)):
        pairs = []
        for name, shape in zip(names, shapes, strict=True):
            if d.chance(0.12):
                continue
            if d.chance(0.5):
                pairs.append(f"(tf.constant(np.array({d.numbers(shape)}, np.{dtype})), {name})")
                continue
            rows = [d.whole(0, shape[0] - 1) for _ in range(d.whole(0 if d.chance(0.1) else 1, 4))]
            values = d.numbers((len(rows), *shape[1:]))
            index = d.choose(["int32", "int64"])
            of = f"np.array({values}, np.{dtype}).reshape({(len(rows), *shape[1:])})"
            pairs.append(
                f"(tf.IndexedSlices(tf.constant({of}), tf.constant(np.array({rows}, np.{index})), tf.constant({list(shape)})), {name})"
            )
        if pairs:
            lines.append(f"optimizer.apply_gradients([{', '.join(pairs)}])")
            lines.append(f"show('variables', [{', '.join(names)}])")
    lines.append(
        f"for name in optimizer.get_slot_names():\n    show(name, [optimizer.get_slot(v, name) for v in [{names[0]}]])"
    )
    return "\n".join(lines) + "\n"


LOSSES = (
    "tf.reduce_sum(tf.square({v} - 0.3))", "tf.reduce_sum(tf.sin({v}))",
    "tf.reduce_sum(tf.square(tf.gather({v}, {rows})))", "tf.reduce_sum(tf.nn.embedding_lookup({v}, {rows}) * {c})",
    "tf.reduce_mean(tf.tanh(tf.gather({v}, {rows}))) + tf.reduce_sum({v} * 0.1)",
    "tf.reduce_sum(tf.gather({v}, {rows})) * tf.reduce_sum(tf.gather({v}, {rows2}))",
    "tf.nn.l2_loss({v})", "tf.reduce_sum(tf.abs({v} + 0.05))",
    "tf.cond(tf.reduce_sum({v}) > 0.2, lambda: tf.reduce_sum(tf.square({v})), lambda: tf.reduce_sum(tf.gather({v}, {rows})))",
    "tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s * 0.5 + tf.reduce_sum(tf.square({v}))), (0, tf.constant(0.0)))[1]",
)  # fmt: skip
"""Losses of a variable, with gradients that are dense, sparse, or both at once."""


def _minimized(d: Drawer) -> str:
    """Losses that a session minimizes, with a schedule, gradients that are clipped, and slots that are read."""
    lines = ["with tf.Graph().as_default():"]
    inner = ["step = tf.train.get_or_create_global_step()"]
    names, losses = [], []
    resource = d.choose([True, True, False])
    for shape in _shapes(d):
        name = d.name("v")
        inner.append(f"{name} = tf.Variable(np.array({d.numbers(shape)}, np.float32), use_resource={resource})")
        names.append(name)
        for _ in range(d.whole(1, 2)):
            rows, rows2 = ([d.whole(0, shape[0] - 1) for _ in range(d.whole(1, 4))] for _ in range(2))
            losses.append(d.choose(LOSSES).format(v=name, rows=rows, rows2=rows2, c=d.number(0.1, 1.5)))
    inner.append(f"loss = tf.add_n([{', '.join(losses)}])")
    inner.append(f"optimizer = {_optimizer(d, d.choose(SCHEDULES))}")
    kind = d.choose(["minimize", "minimize", "clip", "norm", "average"])
    if kind == "minimize":
        inner.append("train = optimizer.minimize(loss, global_step=step)")
    else:
        inner.append("pairs = optimizer.compute_gradients(loss)")
        if kind == "clip":
            inner.append("pairs = [(tf.clip_by_norm(g, 0.7), v) for g, v in pairs]")
        if kind == "norm":
            inner.append(
                "pairs = list(zip(tf.clip_by_global_norm([g for g, _ in pairs], 0.7)[0], [v for _, v in pairs]))"
            )
        inner.append("train = optimizer.apply_gradients(pairs, global_step=step)")
    if kind == "average":
        inner.append("average = tf.train.ExponentialMovingAverage(0.8, step)")
        inner.append(f"with tf.control_dependencies([train]):\n    train = average.apply([{', '.join(names)}])")
    shown = f"[loss, step, {', '.join(names)}]"
    inner.append("with tf.Session() as session:")
    body = [
        "session.run(tf.global_variables_initializer())",
        f"for _ in range({d.whole(1, 5)}):",
        "    session.run(train)",
    ]
    body.append(f"    show('values', session.run({shown}))")
    body.append("for v in tf.global_variables():\n    show(v.op.name.replace('/', '_'), session.run(v))")
    inner += indented(body)
    return "\n".join(lines + indented(inner)) + "\n"


FAMILY = Family(
    "optimizers",
    "optimizers: several steps with dense and sparse gradients, slots and schedules",
    draw,
    model="timberframe_conformance.fuzz.families.optimizers_model",
    share={"float32": 3e-5, "float64": 1e-10},
)
