"""Resources of a session beside nodes of the device: queues, tables, random streams, and who has which."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.suites.checks import Checks, in_threads, only_own_variables, same, tf
from timberframe_conformance.suites.weights import LASTING_RUNS

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "resources"
F = np.float32
X = np.array([1, 2, 3], F)
TIMEOUT_SECONDS = 0.15
LONGEST_MILLISECONDS = 15_000
"""For runs that wait for another thread, which may have failed."""

check = Checks(SUITE)
collect = check.collect


@check("FIFOQueueV2", "elements-stay")
def _elements_stay(target: Target, graph: Any) -> None:
    """Elements that the device computed in several runs keep their values, and leave in their order."""
    x = tf.placeholder(tf.float32, (3,))
    queue = tf.FIFOQueue(20, [tf.float32, tf.int32], shapes=[(3,), ()])
    add = queue.enqueue([tf.square(x), tf.cast(tf.reduce_sum(x), tf.int32)])
    vector, number = queue.dequeue()
    taken = vector + 1.0, number * 2
    with target.session(graph) as session:
        for k in range(6):
            session.run(add, {x: X + k})
        same(session.run(queue.size()), 6, "the number of elements")
        for k in range(6):
            got = session.run(taken)
            same(got[0], (X + k) ** 2 + 1, f"element {k}")
            same(got[1], 2 * (6 + 3 * k), f"the second component of element {k}")


@check("QueueDequeueManyV2", "batches")
def _batches(target: Target, graph: Any) -> None:
    """Several elements at once, of rows that were added at once and one by one."""
    x = tf.placeholder(tf.float32, (None, 2))
    queue = tf.FIFOQueue(20, tf.float32, shapes=[(2,)])
    rows, one = queue.enqueue_many(x * 2.0), queue.enqueue(tf.reduce_sum(x, 0))
    n = tf.placeholder(tf.int32, ())
    batch = tf.matmul(queue.dequeue_many(n), tf.constant([[1.0, 0.0], [1.0, 1.0]]))
    a = np.arange(6, dtype=F).reshape(3, 2)
    added = np.concatenate([2 * a, a.sum(0)[None]]) @ np.array([[1, 0], [1, 1]], F)
    with target.session(graph) as session:
        for _ in range(2):
            session.run(rows, {x: a})
            session.run(one, {x: a})
            same(session.run(batch, {n: 3}), added[:3])
            same(session.run(batch, {n: 1}), added[3:])


@check("PaddingFIFOQueueV2", "sizes")
def _padding(target: Target, graph: Any) -> None:
    """Elements of different sizes become rows with zeros at their ends."""
    x = tf.placeholder(tf.float32, (None,))
    queue = tf.PaddingFIFOQueue(5, tf.float32, shapes=[(None,)])
    add, both = queue.enqueue(x + 1.0), tf.square(queue.dequeue_many(2))
    with target.session(graph) as session:
        for sizes in ((1, 3), (2, 2), (4, 0)):
            for n in sizes:
                session.run(add, {x: np.arange(n, dtype=F)})
            wanted = [[(k + 1) ** 2 if k < n else 0 for k in range(max(sizes))] for n in sizes]
            same(session.run(both), np.array(wanted, F))


@check("RandomShuffleQueueV2", "equal-seeds")
def _shuffled(target: Target, graph: Any) -> None:
    """Every element leaves once; equal seeds give equal orders in two sessions."""
    x = tf.placeholder(tf.float32, ())
    queue = tf.RandomShuffleQueue(20, 0, tf.float32, shapes=[()], seed=3)
    add, take = queue.enqueue(x * 2.0), queue.dequeue() + 1.0
    orders = []
    for _ in range(2):
        with target.session(graph) as session:
            for k in range(8):
                session.run(add, {x: k})
            orders.append([float(session.run(take)) for _ in range(8)])
    same(np.sort(orders[0]), np.arange(8) * 2 + 1, "the elements")
    same(orders[1], orders[0], "the order in a second session")


@check("QueueDequeueV2", "within-a-run")
def _within(target: Target, graph: Any) -> None:
    """A run may take what it adds, whichever it asks for first."""
    x = tf.placeholder(tf.float32, (3,))
    queue = tf.FIFOQueue(1, tf.float32, shapes=[(3,)])
    taken = tf.square(queue.dequeue())
    add = queue.enqueue(x + 1.0)
    with target.session(graph) as session:
        for k in range(3):
            same(session.run([taken, add], {x: X + k})[0], (X + k + 1) ** 2)


@check("QueueDequeueV2", "two-queues-within-a-run")
def _two_queues(target: Target, graph: Any) -> None:
    """A run that adds to two queues and takes from both, before and after nodes of the device."""
    x, taken = tf.placeholder(tf.float32, (3,)), []
    for factor in (2.0, 3.0):
        queue = tf.FIFOQueue(1, tf.float32, shapes=[(3,)])
        with tf.control_dependencies([queue.enqueue(x * factor)]):
            taken.append(queue.dequeue() + 1.0)
    with target.session(graph) as session:
        for k in range(3):
            for got, factor in zip(session.run(taken, {x: X + k}), (2, 3), strict=True):
                same(got, (X + k) * factor + 1)


@check("QueueEnqueueV2", "threads")
def _threads(target: Target, graph: Any) -> None:
    """Threads that add to a small queue and threads that take from it: everything arrives once."""
    x = tf.placeholder(tf.float32, ())
    queue = tf.FIFOQueue(2, tf.float32, shapes=[()])
    add, take = queue.enqueue(x * 2.0), queue.dequeue() + 1.0
    taken: list[float] = []
    options = tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS)
    with target.session(graph) as session:
        session.run(add, {x: 1})
        same(session.run(take), F(3), "the first element")

        def work(number: int) -> None:
            for k in range(10):
                if number % 2:
                    taken.append(float(session.run(take, options=options)))
                else:
                    session.run(add, {x: 10 * number + k}, options)

        in_threads(work, 4)
    wanted = [2 * (10 * number + k) + 1 for number in (0, 2) for k in range(10)]
    same(np.sort(taken), np.sort(wanted), "what the taking threads got")


@check("QueueDequeueManyV2", "cancelled-takes-nothing")
def _cancelled(target: Target, graph: Any) -> None:
    """A run that waits for more than there is, and is given up, leaves what there was."""
    x = tf.placeholder(tf.float32, (2,))
    queue = tf.FIFOQueue(9, tf.float32, shapes=[()])
    add, three = queue.enqueue_many(x + 1.0), tf.square(queue.dequeue_many(3))
    with target.session(graph) as session:
        session.run(add, {x: [1, 2]})
        try:
            session.run(three, options=tf.RunOptions(timeout_in_ms=int(1000 * TIMEOUT_SECONDS)))
        except tf.errors.DeadlineExceededError:
            same(session.run(queue.size()), 2, "the number of elements after a run that was given up")
        else:
            raise CaseFailedError("a run got three elements of a queue that had two")
        session.run(add, {x: [3, 4]})
        same(session.run(three), np.array([4, 9, 16], F))


@check("LookupTableFindV2", "computed-keys")
def _table(target: Target, graph: Any) -> None:
    """Keys that the device computed; the values go on to the device; a key that is missing gives the default."""
    x = tf.placeholder(tf.float32, (None,))
    entries = tf.lookup.KeyValueTensorInitializer(
        tf.constant([2, 4, 6], tf.int64), tf.constant([0.5, 1.5, 2.5]), tf.int64, tf.float32
    )
    table = tf.lookup.StaticHashTable(entries, -1.0)
    y = table.lookup(tf.cast(tf.round(x * 2.0), tf.int64)) * 2.0
    with target.session(graph) as session:
        session.run(tf.tables_initializer())
        same(session.run(y, {x: [1, 3, 2, 7]}), np.array([1, 5, 3, -2], F))
        same(session.run(y, {x: [3]}), np.array([5], F))


@check("LookupTableInsertV2", "computed-values")
def _mutable(target: Target, graph: Any) -> None:
    """Values that the device computed stay in a table, whatever later runs compute."""
    key, x = tf.placeholder(tf.int64, (1,)), tf.placeholder(tf.float32, (1, 3))
    table = tf.lookup.MutableHashTable(tf.int64, tf.float32, tf.constant([0.0, 0.0, 0.0]))
    insert, found = table.insert(key, tf.square(x)), table.lookup(key) + 1.0
    with target.session(graph) as session:
        for k in range(4):
            session.run(insert, {key: [k], x: [X + k]})
        for k in (2, 0, 3, 1):
            same(session.run(found, {key: [k]}), (X + k)[None] ** 2 + 1, f"the value of key {k}")
        same(session.run(found, {key: [9]}), np.ones((1, 3)), "the value of a key that is missing")


@check("RandomUniform", "stream-beside-a-queue")
def _stream(target: Target, graph: Any) -> None:
    """Numbers of the device in a queue are those that a session without the queue gets, run by run."""
    numbers = tf.random_uniform((5,), seed=11)
    queue = tf.FIFOQueue(9, tf.float32, shapes=[(5,)])
    add, taken = queue.enqueue(numbers), queue.dequeue() + 0.0
    with target.session(graph) as session:
        wanted = [session.run(numbers) for _ in range(4)]
    with target.session(graph) as session:
        for _ in range(4):
            session.run(add)
        for k in range(4):
            same(session.run(taken), wanted[k], f"the numbers of run {k}")
    if np.array_equal(wanted[0], wanted[1]):
        raise CaseFailedError("the second run of a session draws the numbers of the first")


@check("ReadVariableOp", "long-unchanged")
def _long_unchanged(target: Target, graph: Any) -> None:
    """Many runs with the same versions, then an update: one in place, one that replaces a version, one of both."""
    x, v, w = tf.placeholder(tf.float32, (3,)), tf.Variable(X), tf.Variable(2 * X)
    y = x * v + w
    updates = [v.assign_add(X).op, v.assign(w * 3.0).op, tf.group(v.assign(X), w.assign(X)), v.assign_sub(X).op]
    values = [(2 * X, 2 * X), (6 * X, 2 * X), (X, X), (0 * X, X)]
    with target.session(graph) as session:
        session.run([v.initializer, w.initializer])
        call = session.make_callable(y, [x])
        for update, (first, second) in zip([None, *updates], [(X, 2 * X), *values], strict=True):
            if update is not None:
                session.run(update)
            for _ in range(LASTING_RUNS):
                same(call(X), X * first + second, "a run after an update")


@check("ConditionalAccumulator", "means")
def _means(target: Target, graph: Any) -> None:
    """Gradients that the device computed: their mean or sum goes on to the device, those of an earlier step do not."""
    x, step = tf.placeholder(tf.float32, (3,)), tf.placeholder(tf.int64, ())
    kinds = [tf.ConditionalAccumulator(tf.float32, (3,), reduction_type=kind) for kind in ("MEAN", "SUM")]
    add = [one.apply_grad(tf.square(x), step) for one in kinds]
    counts = [one.num_accumulated() for one in kinds]
    taken = [one.take_grad(2) + 1.0 for one in kinds]
    with target.session(graph) as session:
        for k in range(3):
            for late in (k, k - 1, k + 1):  # the second is of a step that is over
                session.run(add, {x: X + late, step: late})
            same(session.run(counts), [2, 2], "the number of gradients")
            wanted = (X + k) ** 2 + (X + k + 1) ** 2
            for got, count in zip(session.run(taken), (2, 1), strict=True):
                same(got, wanted / F(count) + 1, f"what step {k} took")


@check("SparseConditionalAccumulator", "rows")
def _rows(target: Target, graph: Any) -> None:
    """Rows that the device computed: the mean of each counts the gradients that have it, and a row twice in one."""
    x = tf.placeholder(tf.float32, (None, 2))
    rows = tf.placeholder(tf.int64, (None,))
    accumulator = tf.SparseConditionalAccumulator(tf.float32, (5, 2))
    add = accumulator.apply_indexed_slices_grad(tf.IndexedSlices(x * 2.0, rows, tf.constant([5, 2], tf.int64)), 9)
    found = accumulator.take_indexed_slices_grad(2)
    taken = found.indices, found.values * 0.5
    with target.session(graph) as session:
        for k in range(3):
            session.run(add, {x: [[k, 1], [2, 2], [3, 3]], rows: [4, 1, 4]})
            session.run(add, {x: [[8, 8]], rows: [1]})
            indices, values = session.run(taken, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS))
            same(indices, np.array([1, 4], np.int64))
            same(values, np.array([[5, 5], [k + 3, 4]], F), f"the rows of step {k}")


@check("AccumulatorTakeGradient", "waits")
def _waits(target: Target, graph: Any) -> None:
    """Who takes waits until there are enough gradients; one who is given up takes none."""
    x = tf.placeholder(tf.float32, (3,))
    accumulator = tf.ConditionalAccumulator(tf.float32, (3,))
    add, taken = accumulator.apply_grad(x * 2.0, 9), tf.square(accumulator.take_grad(3))
    with target.session(graph) as session:
        session.run(add, {x: X})
        try:
            session.run(taken, options=tf.RunOptions(timeout_in_ms=int(1000 * TIMEOUT_SECONDS)))
        except tf.errors.DeadlineExceededError:
            same(session.run(accumulator.num_accumulated()), 1, "the number of gradients after a run that was given up")
        else:
            raise CaseFailedError("a run took three gradients where there was one")
        found: list[Any] = []

        def work(number: int) -> None:
            if number:
                session.run(add, {x: X})
            else:
                found.append(session.run(taken, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS)))

        in_threads(work, 3)
        same(found[0], (2 * X) ** 2, "the mean that a thread took when two others had added")


@check("Graph", "two-sessions")
def _two_sessions(target: Target, graph: Any) -> None:
    """Each session has its own queue, table, stream and variable of the same names."""
    only_own_variables(target)
    x = tf.placeholder(tf.float32, ())
    queue = tf.FIFOQueue(9, tf.float32, shapes=[()], shared_name="queue")
    table = tf.lookup.MutableHashTable(tf.int64, tf.float32, -1.0, shared_name="table")
    v = tf.Variable(0.0, name="v")
    numbers = tf.random_uniform((3,), seed=5)
    change = [queue.enqueue(x * 2.0), table.insert(tf.constant([1], tf.int64), [x]), v.assign(x).op]
    state = [queue.size(), table.lookup(tf.constant([1], tf.int64)), v]
    with target.session(graph) as one, target.session(graph) as other:
        for session in (one, other):
            session.run(v.initializer)
        one.run(change, {x: 4})
        got = [session.run(state) for session in (one, other)]
        for found, wanted in zip(got, ((1, [4], 4), (0, [-1], 0)), strict=True):
            for value, expected in zip(found, wanted, strict=True):
                same(value, expected, "what a session sees of its resources")
        first = one.run(numbers)
        same(other.run(numbers), first, "the first numbers of the second session")


LAST_SECONDS = 2.0
"""How long a thread may take to end once its work is done."""


@check("FIFOQueueV2", "closed-with-elements")
def _closed(target: Target, graph: Any) -> None:
    """A session that is closed with elements in its queue, and with runners at work, gives all back."""
    before, threads = target.settled(target.statistics()), set(threading.enumerate())
    x = tf.random_uniform((500,), seed=1)
    queue = tf.FIFOQueue(4, tf.float32, shapes=[(500,)])
    add = queue.enqueue(x * 2.0)
    runner = tf.train.QueueRunner(queue, [add] * 2)
    with target.session(graph) as session:
        session.run(add)
        coordinator = tf.train.Coordinator()
        runner.create_threads(session, coordinator, daemon=True, start=True)
        value = session.run(queue.dequeue() * 0.5, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS))
        if not np.all((value >= 0) & (value < 1)):
            raise CaseFailedError(f"an element has {value.min()} to {value.max()}; it must be within [0, 1)")
        coordinator.request_stop()
        session.run(queue.close(cancel_pending_enqueues=True))
        coordinator.join(stop_grace_period_secs=20)
    others = set(threading.enumerate()) - threads
    for thread in others:  # one that has nothing left to do may not have ended yet
        thread.join(LAST_SECONDS)
    left = [t.name for t in others if t.is_alive()]
    if left:
        raise CaseFailedError(f"threads {', '.join(left)} go on when the session is closed")
    after = target.settled(before)
    if after.used > before.used:
        raise CaseFailedError(f"{after.used - before.used} bytes more are in use when the session is closed")
