"""The epochs of mnist.py by other libraries, as far as they are installed: functions that train one epoch."""

import mnist
import numpy as np

import kiln


def epochs(model, images, labels):
    """By name, Kiln's first."""
    found = {"kiln": _kiln(model, images, labels), "numpy": _numpy(model, images, labels)}
    for name, make in (("jax", _jax), ("torch", _torch)):
        try:
            found[name] = make(model, images, labels)
        except ImportError:
            print(f"{name} is not installed")
    return found


def _kiln(model, images, labels):
    training = mnist.Training(model)
    data = {"x": kiln.nd.array(images), "labels": kiln.nd.array(labels)}
    return lambda: training.epoch(data)


def _numpy(model, images, labels):
    parameters = [value.astype("float32") for value in mnist.starting_parameters(model)]
    return lambda: mnist.reference_epoch(parameters, images, labels)


def _jax(model, images, labels):
    import jax
    import jax.numpy as jnp

    def total(parameters, x, y):
        scores, count = x, len(parameters) // 2
        for k in range(count):
            scores = (jax.nn.relu(scores) if k else scores) @ parameters[k] + parameters[count + k]
        return -(jax.nn.log_softmax(scores) * y).sum()

    @jax.jit
    def epoch(parameters, x, y):
        def step(parameters, batch):
            loss, slopes = jax.value_and_grad(total)(parameters, *batch)
            return [p - 1e-3 * s for p, s in zip(parameters, slopes)], loss

        return jax.lax.scan(step, parameters, (x, y))

    state = [[jnp.array(v, "float32") for v in mnist.starting_parameters(model)]]
    x = jnp.array(images).reshape(-1, mnist.BATCH, 784)
    y = jnp.array(labels).reshape(-1, mnist.BATCH, 10)

    def run():
        state[0], losses = epoch(state[0], x, y)
        return np.asarray(losses) / mnist.BATCH

    return run


def _torch(model, images, labels):
    import torch

    parameters = [torch.tensor(v, dtype=torch.float32) for v in mnist.starting_parameters(model)]
    count = len(parameters) // 2

    @torch.compile
    def total(parameters, x, y):
        scores = x
        for k in range(count):
            scores = (torch.relu(scores) if k else scores) @ parameters[k] + parameters[count + k]
        return torch.nn.functional.cross_entropy(scores, y, reduction="sum")

    x = torch.tensor(images).split(mnist.BATCH)
    y = torch.tensor(labels).split(mnist.BATCH)
    for parameter in parameters:
        parameter.requires_grad_()

    def run():
        losses = []
        for images, labels in zip(x, y):
            loss = total(parameters, images, labels)
            slopes = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                torch._foreach_sub_(parameters, torch._foreach_mul(slopes, 1e-3))
            losses.append(loss.item() / mnist.BATCH)
        return np.array(losses)

    return run
