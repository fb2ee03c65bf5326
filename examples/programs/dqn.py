"""Deep Q-learning with replay and a target network (Mnih et al. 2015): the way over a frozen lake without a hole."""

from collections import deque

import numpy as np

import timberframe as tf

LAKE = "SFFFFHFHFFFHHFFG"  # start, frozen, hole, goal; of the game FrozenLake, without its slipperiness
SIDE, ACTIONS, BATCH, EPISODES, GAMMA, COPY_EVERY = 4, 4, 32, 300, 0.9, 50
MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]  # left, down, right, up


def walk(state, action):
    """Returns the next state, the reward, and whether the game is over."""
    row, column = [int(np.clip(i + d, 0, SIDE - 1)) for i, d in zip(divmod(state, SIDE), MOVES[action])]
    after = row * SIDE + column
    return after, float(LAKE[after] == "G"), LAKE[after] in "GH"


def network(states, scope):
    with tf.variable_scope(scope, initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1)):
        hidden = tf.layers.dense(tf.one_hot(states, SIDE * SIDE), 24, tf.nn.relu)
        return tf.layers.dense(hidden, ACTIONS)


states, actions = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
rewards, nexts = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [None])
over = tf.placeholder(tf.float32, [None])
q = network(states, "online")
q_next = network(nexts, "target")
target = rewards + GAMMA * (1.0 - over) * tf.reduce_max(q_next, axis=1)
taken = tf.gather_nd(q, tf.stack([tf.range(tf.size(actions)), actions], axis=1))
loss = tf.losses.huber_loss(tf.stop_gradient(target), taken)
train = tf.train.AdamOptimizer(0.01).minimize(
    loss, var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="online")
)
online, old = [tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope + "/dense") for scope in ("online", "target")]
copy = tf.group(*[tf.assign(a, b) for a, b in zip(old, online[: len(old)])])

random, memory, steps, won = np.random.RandomState(0), deque(maxlen=2000), 0, []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(copy)
    for episode in range(EPISODES):
        state, done, reward, epsilon = 0, False, 0.0, max(0.05, 1 - episode / 150)
        for _ in range(40):
            if random.rand() < epsilon:
                action = random.randint(ACTIONS)
            else:
                action = int(sess.run(q, {states: [state]}).argmax())
            after, reward, done = walk(state, action)
            memory.append((state, action, reward, after, float(done)))
            state, steps = after, steps + 1
            if len(memory) >= BATCH and steps % 2 == 0:
                rows = [memory[i] for i in random.randint(0, len(memory), BATCH)]
                sess.run(train, dict(zip((states, actions, rewards, nexts, over), zip(*rows))))
            if steps % COPY_EVERY == 0:
                sess.run(copy)
            if done:
                break
        won.append(reward)
    best = sess.run(q, {states: range(SIDE * SIDE)})

state, path, done = 0, [0], False
while not done and len(path) < 10:
    state, reward, done = walk(state, int(best[state].argmax()))
    path.append(state)
print("of the last 100 games more reach the goal than of the first 100: %s" % (sum(won[-100:]) > sum(won[:100])))
print("the way that it found has %d steps" % (len(path) - 1))
assert LAKE[path[-1]] == "G"
assert len(path) == 7  # no way is shorter
