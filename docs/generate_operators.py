"""Writes docs/operators.md from the docstrings of kiln.topi and the comments of compiler/operators.

    build/venv/bin/python docs/generate_operators.py > docs/operators.md
"""

import importlib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEADER = """\
# Operators

`kiln.topi` has operators on whole tensors, under the names of classic `topi`. They are functions of `te`
tensors; what they give can be read by `te.compute`, scheduled and built like any other tensor.

```python
import kiln as tvm
from kiln import te, topi

x = te.placeholder((te.var("n"), 3, 32, 32), name="x")
w = te.placeholder((16, 3, 3, 3), name="w")
y = topi.nn.relu(topi.nn.conv2d(x, w, strides=1, padding=1))
f = tvm.build([x, w, y])
```

Shapes may be symbolic. Tensors broadcast as numpy's; a number stands for a tensor without dimensions. Products, convolutions, sums,
softmax and layer_norm of float16 and bfloat16 are computed in float32 and rounded once, unless `out_dtype` asks for another type; a
`te.sum` adds up in the type of what it is given.
`topi.generic`, `topi.x86` and `topi.cuda` have any `schedule_*`: each gives a schedule without steps, which the
compiler fills in.

[topi, name by name](topi.md) has every name of TVM v0.10's topi: which of these it is, or what to write instead.
`topi.image`, `topi.sparse` and `topi.vision` are left out, and what quantised and binary networks use.

This page is printed by `docs/generate_operators.py`.
"""

DEFINITIONS = """
## Definitions

The operators of `topi.nn`, the products and the running sums are kernel text in `compiler/operators`, one file a
family. A definition is called on tensors like a function, in Python
(`kiln.load_kernels("matmul.kiln")["matmul"](A, B)`) and in C++ (`kiln::load_file("matmul.kiln")[0](A, B)`):

- Sizes are found from the shapes of the tensors; others are given by name, `conv2d(X, F, stride_h=2, ...)`.
- A type that inputs have stands for the type of the tensors given.
- Dimensions in front of those it has are mapped over, and stretch as numpy's do.
"""

GROUPS = [
    ("Element by element", "kiln.topi._elementwise"),
    ("Reductions", "kiln.topi._reduction"),
    ("Shapes", "kiln.topi._shape"),
    ("Elements chosen by indices", "kiln.topi._gather"),
    ("Elements written at computed places", "kiln.topi._scatter"),
    ("Orders", "kiln.topi._sort"),
    ("Places, layouts and sequences", "kiln.topi._places"),
    ("Tensors of numbers", "kiln.topi._make"),
    ("Products", "kiln.topi._product"),
    ("Spectra", "kiln.topi._signal"),
    ("random: numbers that follow from a state", "kiln.topi.random"),
    ("nn: activations", "kiln.topi.nn._activation"),
    ("nn: layers and losses", "kiln.topi.nn._dense"),
    ("nn: attention", "kiln.topi.nn._attention"),
    ("nn: normalizations", "kiln.topi.nn._normalization"),
    ("nn: convolutions", "kiln.topi.nn._convolution"),
    ("nn: convolutions of any dimensions, in blocks", "kiln.topi.nn._convolution_nd"),
    ("nn: transposed convolutions", "kiln.topi.nn._convolution_transpose"),
    ("nn: pools", "kiln.topi.nn._pooling"),
    ("nn: recurrent layers", "kiln.topi.nn._recurrent"),
    ("nn: blocks of pixels", "kiln.topi.nn._blocks"),
    ("nn: gradients of depthwise convolutions, correlations, queues", "kiln.topi.nn._adjoints"),
    ("nn: padding", "kiln.topi.nn._padding"),
]


def signature(name, function):
    text = str(inspect.signature(function))
    for hidden in (", /", ", span=None", ", attrs=None"):
        text = text.replace(hidden, "")
    return f"`{name}{text}`".replace("|", "\\|")


def rows(module):
    names = getattr(module, "__all__", None) or ["dilate", "pad"]
    for name in sorted(names):
        function = getattr(module, name)
        doc = " ".join((function.__doc__ or "").split())
        other = "" if function.__name__ == name else f" Another name of `{function.__name__}`."
        yield f"| {signature(name, function)} | {doc}{other} |".replace("||", "\\|\\|")


def kernels(path):
    """(signature, comment) of the kernels of a file."""
    text = path.read_text()
    for match in re.finditer(r"((?:^#.*\n)*)^kernel (\w+)(\([^{]*?)\s*\{", text, re.M):
        comment = " ".join(line.lstrip("# ") for line in match[1].splitlines())
        yield f"{match[2]}{' '.join(match[3].split())}", comment


def page():
    lines = [HEADER]
    for title, name in GROUPS:
        lines.append(f"\n## {title}\n\n| operator | meaning |\n|---|---|\n")
        lines += [row + "\n" for row in rows(importlib.import_module(name))]
    lines.append(DEFINITIONS)
    for path in sorted((ROOT / "compiler/operators").glob("*.kiln")):
        first = path.read_text().split("\n\n")[0]
        about = " ".join(line.lstrip("# ") for line in first.splitlines())
        lines.append(f"\n### {path.name}\n\n{about}\n\n| definition | |\n|---|---|\n")
        lines += [f"| `{header}` | {comment} |\n" for header, comment in kernels(path)]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
