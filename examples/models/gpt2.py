"""A transformer of GPT-2 small's sizes with random weights: a prompt of 512 tokens at once, then one token more with
the keys and values of the prompt in a cache on the device."""

import measure
import numpy as np

import kiln
from kiln import te, topi

HEAD = 64


def shapes_of(layers, width, words, places):
    shapes = {"wte": (words, width), "wpe": (places, width), "ln_f.g": (width,), "ln_f.b": (width,)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h{i}.{norm}.g": (width,), f"h{i}.{norm}.b": (width,)}
        for name, rows, columns in (("qkv", width, 3 * width), ("proj", width, width),
                                    ("fc", width, 4 * width), ("out", 4 * width, width)):  # fmt: skip
            shapes |= {f"h{i}.{name}.w": (rows, columns), f"h{i}.{name}.b": (columns,)}
    return shapes


class Model:
    """The layers over rows of tokens. `arrays` are the weights on the device."""

    def __init__(self, program, arrays):
        self.program, self.w = program, {n: program.parameter(a, n) for n, a in arrays.items()}

    def norm(self, x, name):
        return topi.nn.layer_norm(x, self.w[f"{name}.g"], self.w[f"{name}.b"], axis=-1)

    def linear(self, x, name):
        return topi.matmul(x, self.w[f"{name}.w"]) + self.w[f"{name}.b"]

    def attention(self, qkv, keys, values, first, name):
        """Of each row of `qkv`, which stands at place `first` + i, over the keys up to its place."""
        rows, width = qkv.shape[0], qkv.shape[1] // 3
        places, heads = keys.shape[0], width // HEAD
        d, j = te.reduce_axis((0, HEAD), name="d"), te.reduce_axis((0, places), name="j")
        scores = te.compute(
            (heads, rows, places),
            lambda h, i, p: te.sum(qkv[i, h * HEAD + d] * keys[p, h * HEAD + d], axis=d),
            name=f"{name}.scores",
        )
        masked = te.compute(
            scores.shape,
            lambda h, i, p: te.select(p <= first(i), scores[h, i, p] * HEAD**-0.5, -1e30),
            name=f"{name}.masked",
        )
        looks = topi.nn.softmax(masked)
        mixed = te.compute(
            (heads, rows, HEAD), lambda h, i, e: te.sum(looks[h, i, j] * values[j, h * HEAD + e], axis=j), name=f"{name}.mixed"
        )
        return te.compute((rows, width), lambda i, c: mixed[c // HEAD, i, c % HEAD], name=f"{name}.heads")

    def block(self, x, name, first, cache):
        """`cache(name, part, rows)` is what the keys (or values) of all places are, given those of the rows."""
        qkv = self.linear(self.norm(x, f"{name}.ln_1"), f"{name}.qkv")
        width = x.shape[1]
        keys, values = (
            cache(f"{name}.{part}", te.compute(x.shape, lambda i, c: qkv[i, at * width + c], name=f"{name}.{part}"))
            for at, part in ((1, "keys"), (2, "values"))
        )
        x = x + self.linear(self.attention(qkv, keys, values, first, name), f"{name}.proj")
        return x + self.linear(gelu(self.linear(self.norm(x, f"{name}.ln_2"), f"{name}.fc")), f"{name}.out")

    def scores(self, x, row):
        """Of the next token after a row."""
        last = te.compute((1, x.shape[1]), lambda _, c: x[row, c], name="last")
        return topi.matmul(self.norm(last, "ln_f"), self.w["wte"], transp_b=True)


def gelu(x):
    return te.compute(
        x.shape, lambda *i: 0.5 * x(*i) * (1.0 + te.tanh(0.7978845608 * (x(*i) + 0.044715 * x(*i) * x(*i) * x(*i)))), name="gelu"
    )


def prompt_program(arrays, layers, count, caches):
    """Scores after the prompt; leaves its keys and values in the caches."""
    program = kiln.Program("gpt2_prompt")
    model = Model(program, arrays)
    tokens = program.input((count,), "int32", name="tokens")
    width = arrays["wte"].shape[1]
    x = te.compute((count, width), lambda i, c: model.w["wte"][tokens[i], c] + model.w["wpe"][i, c], name="embedded")

    def cache(name, rows):
        old = program.parameter(caches[name], name)
        program.update(old, te.compute(old.shape, lambda p, c: te.if_then_else(p < count, rows[te.min(p, count - 1), c], old[p, c]), name=f"{name}_all"))
        return rows

    for i in range(layers):
        x = model.block(x, f"h{i}", lambda row: row, cache)
    program.output(scores=model.scores(x, count - 1))
    return program


def token_program(arrays, layers, caches):
    """Scores after one token more, whose place is given."""
    program = kiln.Program("gpt2_token")
    model = Model(program, arrays)
    token, place = program.input((), "int32", name="token"), program.input((), "int32", name="place")
    width = arrays["wte"].shape[1]
    x = te.compute((1, width), lambda i, c: model.w["wte"][token(), c] + model.w["wpe"][place(), c], name="embedded")

    def cache(name, row):
        old = program.parameter(caches[name], name)
        new = te.compute(old.shape, lambda p, c: te.select(p == place(), row[0, c], old[p, c]), name=f"{name}_all")
        program.update(old, new)
        return new

    for i in range(layers):
        x = model.block(x, f"h{i}", lambda row: place(), cache)
    program.output(scores=model.scores(x, 0))
    return program


def reference(w, tokens, layers):
    """The scores after the last token, by numpy."""

    def norm(x, name):
        x = x - x.mean(axis=1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w[f"{name}.g"] + w[f"{name}.b"]

    def linear(x, name):
        return x @ w[f"{name}.w"] + w[f"{name}.b"]

    count = len(tokens)
    x = w["wte"][tokens] + w["wpe"][:count]
    for i in range(layers):
        q, k, v = (
            part.reshape(count, -1, HEAD).transpose(1, 0, 2)
            for part in np.split(linear(norm(x, f"h{i}.ln_1"), f"h{i}.qkv"), 3, axis=1)
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(HEAD)) + np.triu(np.full((count, count), -1e30), 1)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (e / e.sum(axis=-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(count, -1)
        x = x + linear(mixed, f"h{i}.proj")
        y = linear(norm(x, f"h{i}.ln_2"), f"h{i}.fc")
        y = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
        x = x + linear(y, f"h{i}.out")
    return norm(x[-1:], "ln_f") @ w["wte"].T


def main():
    options = measure.arguments(__doc__, layers=12, width=768, words=50257, places=1024, tokens=512)
    w = measure.weights(shapes_of(options.layers, options.width, options.words, options.places))
    arrays = {name: kiln.nd.array(value) for name, value in w.items()}
    caches = {
        f"h{i}.{part}": kiln.nd.array(np.zeros((options.places, options.width), "float32"))
        for i in range(options.layers)
        for part in ("keys", "values")
    }
    tokens = np.random.default_rng(2).integers(0, options.words, options.tokens + 1).astype("int32")
    prompt = prompt_program(arrays, options.layers, options.tokens, caches)
    measure.compiled(prompt, {"tokens": tokens[:-1]})
    result = measure.timed(prompt, {"tokens": tokens[:-1]}, options.runs, f"a prompt of {options.tokens} tokens")
    measure.checked(result.scores, reference(w, tokens[:-1], options.layers), 1e-3)
    one = token_program(arrays, options.layers, caches)
    feeds = {"token": np.int32(tokens[-1]), "place": np.int32(options.tokens)}
    measure.compiled(one, feeds)
    result = measure.timed(one, feeds, options.runs, "one token more")
    measure.checked(result.scores, reference(w, tokens, options.layers), 1e-3)


if __name__ == "__main__":
    main()
