"""Actor and critic (Sutton and Barto 2018): a pole on a cart, where the critic says what each state is worth."""

import numpy as np

import timberframe as tf

UPDATES, STEPS, GAMMA, CARTS = 300, 8, 0.97, 16


class CartPoles:
    """Some carts side by side; the task of Barto, Sutton and Anderson (1983), by Euler's method in steps of 0.02 s."""

    def __init__(self, random):
        self.random, self.states = random, random.uniform(-0.05, 0.05, size=(CARTS, 4))

    def step(self, actions):
        """Returns the next states, and whether each pole fell; those that did begin again."""
        _, speed, angle, turning = self.states.T
        pushed = (np.where(actions == 1, 10.0, -10.0) + 0.05 * turning**2 * np.sin(angle)) / 1.1
        turned = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moved = pushed - 0.05 * turned * np.cos(angle) / 1.1
        self.states = self.states + 0.02 * np.stack([speed, moved, turning, turned], 1)
        over = (abs(self.states[:, 0]) > 2.4) | (abs(self.states[:, 2]) > 0.21)
        reached = self.states
        self.states = np.where(over[:, None], self.random.uniform(-0.05, 0.05, size=(CARTS, 4)), reached)
        return reached, over


class ActorCritic(object):
    def __init__(self):
        self.state = tf.placeholder(tf.float32, [None, 4], "state")
        self.action = tf.placeholder(tf.int32, [None], "action")
        self.target = tf.placeholder(tf.float32, [None], "target")
        with tf.variable_scope("shared"):
            hidden = self._dense(self.state, 32, tf.nn.tanh, 1)
        with tf.variable_scope("actor"):
            logits = self._dense(hidden, 2, None, 2)
            policy = tf.distributions.Categorical(logits=logits)
            self.probabilities = policy.probs
        with tf.variable_scope("critic"):
            self.value = tf.squeeze(self._dense(hidden, 1, None, 3), 1)
        advantage = tf.stop_gradient(self.target - self.value)
        self.policy_loss = -tf.reduce_mean(policy.log_prob(self.action) * advantage)
        self.value_loss = tf.reduce_mean(tf.squared_difference(self.value, self.target))
        loss = self.policy_loss + 0.25 * self.value_loss - 0.01 * tf.reduce_mean(policy.entropy())
        optimizer = tf.train.RMSPropOptimizer(0.01)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        self.train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 0.5)[0], variables))

    def _dense(self, x, size, activation, seed):
        return tf.layers.dense(x, size, activation, kernel_initializer=tf.orthogonal_initializer(seed=seed))


random = np.random.RandomState(0)
carts, lengths, ages = CartPoles(random), [], np.zeros(CARTS)
with tf.Session() as sess:
    net = ActorCritic()
    sess.run(tf.global_variables_initializer())
    for _ in range(UPDATES):
        seen, done, reached, ended = [], [], [], []
        for _ in range(STEPS):
            p = sess.run(net.probabilities, {net.state: carts.states})
            seen.append(carts.states)
            done.append((random.uniform(size=CARTS) < p[:, 1]).astype(int))
            after, over = carts.step(done[-1])
            reached.append(after)
            ended.append(over)
            ages += 1
            lengths += list(ages[over])
            ages[over] = 0
        targets, worth = [], sess.run(net.value, {net.state: reached[-1]})
        for over in reversed(ended):
            worth = 1.0 + GAMMA * np.where(over, 0.0, worth)
            targets.insert(0, worth)
        fed = {net.state: np.concatenate(seen), net.action: np.concatenate(done), net.target: np.concatenate(targets)}
        loss, _ = sess.run([net.value_loss, net.train], fed)

early, late = np.mean(lengths[:20]), np.mean(lengths[-20:])
print("the pole stays up more than twice as long at last as at first: %s" % (late > 2 * early))
assert late > 2 * early
