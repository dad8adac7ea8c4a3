"""By torch, eager. `compiled` is what inductor_models.py replaces."""

import torch
import torch.nn.functional as F

from model_peers import data


def compiled(function):
    return function


def _started(sizes, weights):
    torch.set_num_threads(sizes.threads)
    return {name: torch.tensor(value) for name, value in weights.items()}


def _run(function, *inputs):
    function = compiled(function)

    def run():
        with torch.no_grad():
            return function(*inputs).numpy()

    return run


def resnet(sizes):
    import resnet as example

    weights, images = data.resnet(sizes)
    w = _started(sizes, weights)

    def conv(x, f, stride, padding, scale, shift):
        return F.conv2d(x, f, stride=stride, padding=padding) * scale[:, None, None] + shift[:, None, None]

    def network(x):
        return example.layers(
            x, w, conv, F.relu, lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: x.mean((2, 3)), lambda x, w, b: F.linear(x, w, b)
        )

    return _run(network, torch.tensor(images))


def lstm(sizes):
    weights, values = data.lstm(sizes)
    w = _started(sizes, weights)
    network = torch.nn.LSTM(sizes.hidden, sizes.hidden, num_layers=2, bias=False)
    with torch.no_grad():
        for i in range(2):
            getattr(network, f"weight_ih_l{i}").copy_(w[f"l{i}.x"].T)
            getattr(network, f"weight_hh_l{i}").copy_(w[f"l{i}.h"].T)
    return _run(lambda x: network(x)[0], torch.tensor(values))


def gpt2(sizes):
    weights, tokens = data.gpt2(sizes)
    w, count = _started(sizes, weights), len(tokens)

    def norm(x, name):
        return F.layer_norm(x, (sizes.width,), w[f"{name}.g"], w[f"{name}.b"])

    def linear(x, name):
        return x @ w[f"{name}.w"] + w[f"{name}.b"]

    def network(tokens):
        x = w["wte"][tokens] + w["wpe"][:count]
        for i in range(sizes.layers):
            parts = linear(norm(x, f"h{i}.ln_1"), f"h{i}.qkv").split(sizes.width, 1)
            q, k, v = (part.reshape(count, -1, 64).transpose(0, 1) for part in parts)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(count, -1)
            x = x + linear(mixed, f"h{i}.proj")
            x = x + linear(F.gelu(linear(norm(x, f"h{i}.ln_2"), f"h{i}.fc"), approximate="tanh"), f"h{i}.out")
        return norm(x[-1:], "ln_f") @ w["wte"].T

    return _run(network, torch.tensor(tokens))


def mnist(sizes):
    """An epoch of training; mnist_peers compiles the loss."""
    import mnist_peers

    torch.set_num_threads(sizes.threads)
    return mnist_peers._torch("mlp", *data.mnist())
