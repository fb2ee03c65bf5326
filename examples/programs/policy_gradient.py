"""Policy gradients (REINFORCE): a pole on a cart is kept upright by pushes to the left and to the right."""

import numpy as np

import timberframe as tf

EPISODES, LONGEST, GAMMA = 200, 120, 0.97


class CartPole:
    """The task of Barto, Sutton and Anderson (1983), by Euler's method in steps of 0.02 s."""

    def reset(self, random):
        self.state = random.uniform(-0.05, 0.05, size=4)
        return self.state

    def step(self, action):
        _, speed, angle, turning = self.state
        force = 10.0 if action == 1 else -10.0
        pushed = (force + 0.05 * turning**2 * np.sin(angle)) / 1.1
        turned = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moved = pushed - 0.05 * turned * np.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.array([speed, moved, turning, turned])
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21


states = tf.placeholder(tf.float32, [None, 4])
actions = tf.placeholder(tf.int32, [None])
returns = tf.placeholder(tf.float32, [None])
w1 = tf.get_variable("w1", [4, 16], initializer=tf.random_normal_initializer(stddev=0.5, seed=1))
w2 = tf.get_variable("w2", [16, 2], initializer=tf.random_normal_initializer(stddev=0.1, seed=2))
logits = tf.matmul(tf.nn.tanh(tf.matmul(states, w1)), w2)
probabilities = tf.nn.softmax(logits)
chosen = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
loss = -tf.reduce_mean(chosen * returns)
train = tf.train.AdamOptimizer(0.02).minimize(loss)

random, task, lengths = np.random.RandomState(0), CartPole(), []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    decide = sess.make_callable(probabilities, [states])
    for _ in range(EPISODES):
        seen, done = [], []
        state, over = task.reset(random), False
        while not over and len(done) < LONGEST:
            p = decide(state[None].astype(np.float32))[0]
            action = int(random.uniform() < p[1])
            seen.append(state)
            done.append(action)
            state, over = task.step(action)
        worth = np.array([(1 - GAMMA ** (len(done) - t)) / (1 - GAMMA) for t in range(len(done))])
        worth = (worth - worth.mean()) / (worth.std() + 1e-8)
        sess.run(train, {states: seen, actions: done, returns: worth})
        lengths.append(len(done))

early, late = np.mean(lengths[:20]), np.mean(lengths[-20:])
print("the pole stays up %.0f steps at first and up to %d at last" % (early, np.max(lengths[-20:])))
assert late > 2.5 * early
