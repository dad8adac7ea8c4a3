"""By Kiln: inputs and results are numpy arrays, as those of the others are."""

import numpy as np

import kiln
from model_peers import data


def resnet(sizes):
    import resnet as example

    weights, images = data.resnet(sizes)
    program, x = example.model(sizes.batch, weights, sizes.image)
    return lambda: program.run({x: images}).scores


def lstm(sizes):
    import lstm as example

    weights, values = data.lstm(sizes)
    program = kiln.Program("lstm")
    x = program.input(values.shape, name="x")
    program.output(y=example.layer(program, example.layer(program, x, weights, "l0"), weights, "l1"))
    return lambda: program.run({x: values}).y


def gpt2(sizes):
    import gpt2 as example

    weights, tokens = data.gpt2(sizes)
    arrays = {name: kiln.nd.array(value) for name, value in weights.items()}
    caches = {
        f"h{i}.{part}": kiln.nd.array(np.zeros((sizes.places, sizes.width), "float32"))
        for i in range(sizes.layers)
        for part in ("keys", "values")
    }
    program = example.prompt_program(arrays, sizes.layers, sizes.tokens, caches)
    return lambda: program.run({"tokens": tokens}).scores


def mnist(sizes):
    import mnist_peers

    return mnist_peers._kiln("mlp", *data.mnist())
