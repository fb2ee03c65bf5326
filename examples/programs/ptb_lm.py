"""A language model of words, as for the Penn Treebank (Zaremba et al. 2014): the state goes from part to part."""

import collections
import re

import numpy as np
from sklearn import datasets

import timberframe as tf


class Config(object):
    init_scale, learning_rate, max_grad_norm = 0.1, 1.0, 5.0
    num_layers, num_steps, hidden_size, batch_size = 2, 10, 64, 8
    max_epoch, max_max_epoch, keep_prob, lr_decay, vocab_size = 5, 7, 0.9, 0.6, 500


def producer(ids, batch_size, num_steps, name):
    """Parts of the text, [batch_size, num_steps], by a queue of indices, and the words that follow."""
    with tf.name_scope(name):
        batch_len = len(ids) // batch_size
        data = tf.reshape(tf.convert_to_tensor(ids[: batch_size * batch_len], tf.int32), [batch_size, batch_len])
        i = tf.train.range_input_producer((batch_len - 1) // num_steps, shuffle=False).dequeue()
        x = tf.strided_slice(data, [0, i * num_steps], [batch_size, (i + 1) * num_steps])
        y = tf.strided_slice(data, [0, i * num_steps + 1], [batch_size, (i + 1) * num_steps + 1])
        x.set_shape([batch_size, num_steps])
        y.set_shape([batch_size, num_steps])
        return x, y, (batch_len - 1) // num_steps


class PTBModel(object):
    def __init__(self, is_training, config, ids, name):
        x, y, self.epoch_size = producer(ids, config.batch_size, config.num_steps, name)
        size, dropout = config.hidden_size, is_training and config.keep_prob < 1

        def make_cell():
            cell = tf.contrib.rnn.BasicLSTMCell(size, forget_bias=0.0, reuse=not is_training)
            return tf.contrib.rnn.DropoutWrapper(cell, output_keep_prob=config.keep_prob) if dropout else cell

        cell = tf.contrib.rnn.MultiRNNCell([make_cell() for _ in range(config.num_layers)])
        self.initial_state = cell.zero_state(config.batch_size, tf.float32)
        embedding = tf.get_variable("embedding", [config.vocab_size, size])
        inputs = tf.nn.embedding_lookup(embedding, x)
        inputs = tf.nn.dropout(inputs, config.keep_prob) if dropout else inputs
        outputs, self.final_state = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), initial_state=self.initial_state)
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, config.vocab_size])
        logits = tf.nn.xw_plus_b(output, softmax_w, tf.get_variable("softmax_b", [config.vocab_size]))
        logits = tf.reshape(logits, [config.batch_size, config.num_steps, config.vocab_size])
        loss = tf.contrib.seq2seq.sequence_loss(logits, y, tf.ones_like(y, tf.float32), average_across_timesteps=False)
        self.cost = tf.reduce_sum(loss)
        if is_training:
            self.lr = tf.Variable(0.0, trainable=False)
            tvars = tf.trainable_variables()
            grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), config.max_grad_norm)
            self.train_op = tf.train.GradientDescentOptimizer(self.lr).apply_gradients(zip(grads, tvars))


def run_epoch(session, model, eval_op=None):
    costs, state = 0.0, session.run(model.initial_state)
    fetches = {"cost": model.cost, "final_state": model.final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for _ in range(model.epoch_size):
        feed_dict = {}
        for (c, h), values in zip(model.initial_state, state):
            feed_dict[c], feed_dict[h] = values.c, values.h
        vals = session.run(fetches, feed_dict)
        costs, state = costs + vals["cost"], vals["final_state"]
    return np.exp(costs / (model.epoch_size * Config.num_steps))


names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
words = [w for n in names for w in re.findall("[a-z]+|[0-9]|[.,:]", getattr(datasets, "load_" + n)().DESCR.lower())]
known = [w for w, _ in collections.Counter(words).most_common(Config.vocab_size - 1)]
ids = [known.index(w) if w in known else Config.vocab_size - 1 for w in words]
counts = np.bincount(ids[:-500], minlength=Config.vocab_size) + 1.0
unigram = np.exp(-np.mean(np.log(counts / counts.sum())[ids[-500:]]))

with tf.Graph().as_default():
    tf.set_random_seed(1)
    initializer = tf.random_uniform_initializer(-Config.init_scale, Config.init_scale, seed=1)
    with tf.variable_scope("Model", reuse=None, initializer=initializer):
        m = PTBModel(True, Config, ids[:-500], "Train")
    with tf.variable_scope("Model", reuse=True, initializer=initializer):
        mtest = PTBModel(False, Config, ids[-500:], "Test")
    with tf.train.MonitoredTrainingSession() as session:
        for i in range(Config.max_max_epoch):
            rate = Config.learning_rate * Config.lr_decay ** max(i + 1 - Config.max_epoch, 0.0)
            m.lr.load(rate, session)
            print("epoch %d: train perplexity %.1f" % (i + 1, run_epoch(session, m, m.train_op)))
        perplexity = run_epoch(session, mtest)

print("test perplexity %.1f; that of the words' frequencies %.1f" % (perplexity, unigram))
assert perplexity < unigram
