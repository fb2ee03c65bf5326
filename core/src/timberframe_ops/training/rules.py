"""The formulas of the update ops, in NumPy: ``rule(attrs, variable, *slots, *others) -> (variable, *slots)``.

Arguments come in the order of the ops' inputs. They follow TensorFlow's kernels step by step; the papers they come from
are named at each. They run on arrays as references and on `Approximate` numbers as error bounds.
"""

from __future__ import annotations

from typing import Any

from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.running_error import above, absolute, exp, maximum, power, sign, sqrt, values

States = tuple[Any, ...]


def gradient_descent(attrs: Attrs, var: Any, alpha: Any, delta: Any) -> States:
    """Returns one step down the gradient."""
    return (var - delta * alpha,)


def momentum(attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> States:
    """Sutskever, Martens, Dahl and Hinton 2013, On the importance of initialization and momentum in deep learning."""
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if attrs["use_nesterov"] else accum * lr
    return var - step, accum


def keras_momentum(attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> States:
    """Momentum whose accumulator holds the step itself."""
    accum = accum * momentum - grad * lr
    step = accum * momentum - grad * lr if attrs["use_nesterov"] else accum
    return var + step, accum


def adagrad(attrs: Attrs, var: Any, accum: Any, lr: Any, grad: Any) -> States:
    """Duchi, Hazan and Singer 2011, Adaptive subgradient methods for online learning and stochastic optimization."""
    accum = accum + grad * grad if attrs["update_slots"] else accum
    return var - grad * lr / sqrt(accum), accum


def adagrad_v2(attrs: Attrs, var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any) -> States:
    """Adagrad with epsilon added to the root."""
    accum = accum + grad * grad if attrs["update_slots"] else accum
    return var - grad * lr / (sqrt(accum) + epsilon), accum


def adagrad_da(
    attrs: Attrs, var: Any, total: Any, squares: Any, grad: Any, lr: Any, l1: Any, l2: Any, global_step: Any
) -> States:
    """Returns the dual averaging form of Adagrad, with regularisation that grows with the step."""
    total, squares = total + grad, squares + grad * grad
    curve = l2 * (global_step * lr) + sqrt(squares)
    pulled = sign(total) * maximum(absolute(total) - global_step * l1, 0.0) if values(l1) > 0 else total
    return -lr * pulled / curve, total, squares


def adadelta(
    attrs: Attrs, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> States:
    """Zeiler 2012, ADADELTA: an adaptive learning rate method."""
    accum = accum * rho + grad * grad * (1 - rho)
    update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


def rmsprop(
    attrs: Attrs, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> States:
    """Tieleman and Hinton 2012, lecture 6.5 of Neural Networks for Machine Learning."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rmsprop(
    attrs: Attrs, var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> States:
    """RMSProp by the variance instead of the mean square (Graves 2013, arXiv 1308.0850, equations 38 to 45)."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / sqrt((ms - mg * mg) + epsilon)
    return var - mom, mg, ms, mom


def adam(
    attrs: Attrs, var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any,
) -> States:  # fmt: skip
    """Kingma and Ba 2015, Adam: a method for stochastic optimization, in the form before its section 2.1."""
    rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    mean = grad * (1 - beta1) + beta1 * m if attrs["use_nesterov"] else m
    return var - mean * rate / (sqrt(v) + epsilon), m, v


def adam_with_amsgrad(
    attrs: Attrs, var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any, grad: Any,
) -> States:  # fmt: skip
    """Reddi, Kale and Kumar 2018, On the convergence of Adam and beyond."""
    rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = maximum(vhat, v)
    return var - m * rate / (sqrt(vhat) + epsilon), m, v, vhat


def adamax(
    attrs: Attrs, var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> States:
    """Kingma and Ba 2015, section 7.1."""
    m = m + (grad - m) * (1 - beta1)
    v = maximum(beta2 * v, absolute(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def ftrl(
    attrs: Attrs, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
) -> States:
    """McMahan et al. 2013, Ad click prediction: a view from the trenches."""
    return ftrl_v2(attrs, var, accum, linear, grad, lr, l1, l2, 0.0, lr_power)


def ftrl_v2(
    attrs: Attrs, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any,
    lr_power: Any,
) -> States:  # fmt: skip
    """Ftrl whose gradient is that of the loss plus l2_shrinkage times the variable's square."""
    halved = values(lr_power) == -0.5
    scaled = attrs["multiply_linear_by_lr"]
    shrunk = grad + 2 * l2_shrinkage * var
    total = accum + grad * grad
    raised, before = (sqrt(x) if halved else power(x, -lr_power) for x in (total, accum))
    step = (raised - before) * var
    linear = linear + (shrunk * lr - step if scaled else shrunk - (raised - before) / lr * var)
    pull = l1 * lr if scaled else l1
    curve = raised + 2 * l2 * lr if scaled else raised / lr + 2 * l2
    return above(absolute(linear), pull + linear * 0, (pull * sign(linear) - linear) / curve), total, linear


def proximal_gradient_descent(attrs: Attrs, var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> States:
    """Duchi and Singer 2009, Efficient learning using forward-backward splitting."""
    return (_proximal(var - delta * alpha, alpha, l1, l2),)


def proximal_adagrad(attrs: Attrs, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> States:
    """Forward-backward splitting with Adagrad's learning rate."""
    accum = accum + grad * grad
    rate = lr / sqrt(accum)
    return _proximal(var - grad * rate, rate, l1, l2), accum


def _proximal(v: Any, rate: Any, l1: Any, l2: Any) -> Any:
    shrink = 1 + l2 * rate
    return sign(v) * maximum(absolute(v) - rate * l1, 0.0) / shrink if values(l1) > 0 else v / shrink


def add_sign(attrs: Attrs, var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> States:
    """Bello, Zoph, Vasudevan and Le 2017, Neural optimizer search with reinforcement learning."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * (sign(grad) * sign(m))) * grad, m


def power_sign(attrs: Attrs, var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> States:
    """Bello, Zoph, Vasudevan and Le 2017, Neural optimizer search with reinforcement learning."""
    m = m * beta + grad * (1 - beta)
    return var - lr * exp(logbase * sign_decay * (sign(grad) * sign(m))) * grad, m
