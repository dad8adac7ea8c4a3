"""Writes the stubs (.pyi) of what users import from kiln, for mypy, pyright and editors.

    build/venv/bin/python client/python/generate_stubs.py            writes them beside the modules
    build/venv/bin/python client/python/generate_stubs.py --check    exits 1 where one is behind

Names, arguments and defaults are those of the modules themselves, which a checker cannot see, since many are made from tables.
Types are taken from what a parameter is called, and from the tables below; what may be of many types is Any. All classes are in
kiln/_stubs.pyi, and each module of the surface imports from there.
"""

import ast
import importlib
import inspect
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
# The package that is installed, which has the messages of the wire.
sys.path[:] = [path for path in sys.path if pathlib.Path(path).resolve() != HERE]
MODULES = (
    "kiln", "kiln.te", "kiln.tir", "kiln.topi", "kiln.topi.nn", "kiln.topi.random", "kiln.topi.tag", "kiln.topi.utils", "kiln.nd",
    "kiln.runtime", "kiln.target", "kiln.ir", "kiln.error", "kiln.testing", "kiln.transform", "kiln.driver", "kiln.driver.build_module", "kiln.optimizers",
    "kiln.contrib", "kiln.contrib.cc", "kiln.contrib.clang", "kiln.contrib.utils",
)  # fmt: skip
# Classes that users meet without importing them.
MET = {
    "kiln._definitions.tensor": ("Indexable", "Operation", "Tensor", "TensorSlice", "PlaceholderOp", "ComputeOp", "ScanOp", "ScatterOp",
                                 "ExternOp", "HybridOp", "TensorComputeOp"),
    "kiln._definitions.intrin": ("TensorIntrin",),
    "kiln._expressions.expr": ("Operand", "Expr", "Axis", "Var"),
    "kiln._schedule.schedule": ("Schedule",),
    "kiln._schedule.stage": ("Stage",),
    "kiln._schedule.axes": ("DerivedAxis", "IterVar"),
    "kiln._schedule.relations": ("Split", "Fuse", "Singleton"),
    "kiln._service.call": ("Future",),
    "kiln._service.connection": ("Connection",),
    "kiln._service.function": ("Function", "Library", "DeviceModule", "ProfileResult"),
    "kiln._service.profiled": ("Profile",),
}  # fmt: skip

HEAD = '"""{}Written by generate_stubs.py; do not edit."""\n'
ALIASES = """
from concurrent.futures import Future as _Future
from typing import Any, Callable, Iterator, Sequence, Union
from typing_extensions import TypeAlias

import numpy as np

_Scalar: TypeAlias = Union["Operand", bool, int, float]
_Shape: TypeAlias = Union[Sequence[Any], "Expr", int]
_Tensors: TypeAlias = Union[Sequence["Tensor"], "Tensor"]
"""

# What parameters of these names take, whatever the function.
PARAMETERS = {
    "name": "str", "dtype": "Any", "shape": "_Shape", "fcompute": "Callable[..., Any]", "fcombine": "Callable[..., Any]",
    "fidentity": "Callable[..., Any]", "factor": "Any", "nparts": "Any", "number": "int", "repeat": "int", "keepdims": "bool",
    "transpose_a": "bool", "transpose_b": "bool", "simple_mode": "bool", "address": "str | None", "token": "str | None", "path": "Any",
    "kind": "str", "pragma_type": "str", "seed": "Any", "is_ascend": "bool", "layout": "str | None", "data_layout": "str | None",
    "pool_type": "str", "text": "str",
}  # fmt: skip

# module.function -> what it gives; else by the module.
RETURNS = {
    "te.placeholder": "Tensor", "te.var": "Any", "te.size_var": "Var", "te.reduce_axis": "IterVar", "te.thread_axis": "Any",
    "te.create_schedule": "Schedule", "te.const": "Expr", "te.gradient": "list[Tensor]", "te.compute": "Any", "te.scan": "Any",
    "te.comm_reducer": "Callable[..., Any]", "te.decl_tensor_intrin": "TensorIntrin", "te.tag_scope": "Any", "te.min_value": "Expr",
    "te.max_value": "Expr", "te.convert": "Any", "kiln.build": "Any", "kiln.compile": "Any", "kiln.lower": "str", "kiln.tune": "TuneResult", "kiln.predict": "Predictions",
    "kiln.connect": "Connection", "kiln.describe": "dict[str, Any]", "kiln.job": "Job", "kiln.jobs": "list[JobState]",
    "kiln.load_kernels": "dict[str, Kernel]", "kiln.parse_kernels": "dict[str, Kernel]", "kiln.kernel_text": "str", "kiln.kernel": "Kernel",
    "kiln.load_schedule": "Any", "kiln.parse_schedule": "Any", "runtime.load_module": "Any", "kiln.load_artifact": "ArtifactFunction", "runtime.enabled": "bool",
    "ir.save_json": "str", "testing.assert_allclose": "None",
    **{f"kiln.{name}": "Device" for name in ("cpu", "cuda", "gpu", "device", "context", "cl", "opencl", "metal", "rocm", "vulkan")},
    **{f"nd.{name}": "NDArray" for name in ("array", "empty", "full", "ones", "zeros")},
}  # fmt: skip
# topi's functions that give several tensors, or none.
SEVERAL = {
    "batch_norm", "batch_norm_train", "dft", "gru", "lstm", "meshgrid", "multinomial", "normal", "split", "threefry_generate",
    "threefry_split", "topk", "uniform", "unique",
}  # fmt: skip
BY_MODULE = {"topi": "Tensor", "topi.nn": "Tensor"}

# class.method or class.property -> what it gives.
OF_CLASSES = {
    "Function.time_evaluator": "Callable[..., ProfileResult]", "Function.profile": "Profile", "Function.submit": "Future",
    "Function.submit_job": "Job", "Function.timings": "dict[str, Any]", "Function.report": "dict[str, Any]", "Function.source": "str",
    "Function.get_source": "str", "Function.device": "Device", "Function.imported_modules": "list[DeviceModule]",
    "Function.get_function": "Function", "Function.export_artifact": "None", "Function.__getitem__": "Function", "Library.__getitem__": "Function",
    "Library.get_function": "Function", "DeviceModule.get_source": "str", "ProfileResult.mean": "float", "ProfileResult.min": "float",
    "ProfileResult.max": "float", "ProfileResult.median": "float", "ProfileResult.std": "float", "Profile.bandwidth": "float",
    "Profile.rows": "list[tuple[str, float, float]]", "NDArray.numpy": "np.ndarray[Any, Any]", "NDArray.asnumpy": "np.ndarray[Any, Any]",
    "NDArray.shape": "tuple[int, ...]", "NDArray.ndim": "int", "NDArray.size": "int", "NDArray.nbytes": "int", "NDArray.device": "Device",
    "NDArray.dtype": "Any", "NDArray.__array__": "np.ndarray[Any, Any]", "NDArray.copy": "NDArray", "NDArray.__len__": "int", "Tensor.name": "str", "Tensor.ndim": "int",
    "Operation.outputs": "list[Tensor]", "Operation.output": "Tensor", "Operation.num_outputs": "int",
    "Operation.input_tensors": "list[Tensor]", "Schedule.__getitem__": "Stage", "Schedule.cache_write": "Any",
    "Schedule.cache_read": "Tensor", "Stage.split": "tuple[DerivedAxis, DerivedAxis]",
    "Stage.tile": "tuple[DerivedAxis, DerivedAxis, DerivedAxis, DerivedAxis]", "Stage.fuse": "DerivedAxis", "Connection.close": "None",
    "Connection.describe": "dict[str, Any]", "Device.exist": "bool", "Connection.build": "Any",
}  # fmt: skip
_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror "
    "rxor rlshift rrshift neg pos invert abs lt le gt ge eq ne"
).split()
_OTHERS = "getitem setitem call len enter exit await float int index array dlpack dlpack_device".split()
DUNDERS = {f"__{name}__" for name in (*_OPERATORS, *_OTHERS)}
COMPARISONS = ("__eq__", "__ne__")
BASES = {"Future": "_Future[Any]"}


def short(module):
    return module.removeprefix("kiln.")


class Writer:
    """The text of all stubs; classes are collected as they are met."""

    def __init__(self):
        self.classes = {}
        for module, names in MET.items():
            for name in names:
                self.meet(getattr(importlib.import_module(module), name))

    def meet(self, kind):
        """The name that a class has in _stubs.pyi; its bases come before it."""
        for base in kind.__bases__:
            if base.__module__.startswith("kiln") and not base.__name__.startswith("_"):
                self.meet(base)
        self.classes.setdefault(kind.__name__, kind)
        return kind.__name__

    # Functions.

    def parameters(self, function):
        """The list of parameters as source; (...) where Python does not know it."""
        try:
            signature = inspect.signature(function)
        except ValueError:
            return "*args: Any, **kwargs: Any"
        parts, star, slash = [], False, False
        for p in signature.parameters.values():
            if slash and p.kind is not p.POSITIONAL_ONLY:
                parts.append("/")
                slash = False
            slash = p.kind is p.POSITIONAL_ONLY
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            if p.name == "self":
                parts.append("self")
                continue
            prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            star = star or prefix == "*"
            kind = PARAMETERS.get(p.name, "Any")
            if p.default is None and kind != "Any" and "None" not in kind:
                kind += " | None"
            parts.append(f"{prefix}{p.name}: {kind}" + (" = ..." if p.default is not p.empty else ""))
        return ", ".join(parts + ["/"] * slash)

    def function(self, module, name, function):
        own = RETURNS.get(f"{short(module)}.{name}") or RETURNS.get(f"te.{name}") or RETURNS.get(f"kiln.{name}")
        inherited = "Any" if function.__name__ in SEVERAL else BY_MODULE.get(short(module), "Any")
        return f"def {name}({self.parameters(function)}) -> {own or inherited}: ..."

    # Classes.

    def class_text(self, name, kind):
        own = self.classes.values()
        bases = ["tuple[Any, ...]" if b is tuple else b.__name__ for b in kind.__bases__ if b in own or b.__module__ == "builtins" and b is not object]
        bases += [BASES[name]] if name in BASES else []
        lines = [f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"]
        kept = {}
        for owner in reversed([c for c in kind.__mro__ if c.__module__.startswith("kiln")]):
            if owner is kind or owner.__name__ not in self.classes:
                kept.update(vars(owner))
                lines += [f"    {each}: {OF_CLASSES.get(f'{name}.{each}', 'Any')}" for each in attributes(owner) if each not in kept]
        for member, value in sorted(kept.items()):
            if not member.startswith("_") or member in DUNDERS or member == "__init__":
                lines += self.member(name, member, value)
        return "\n".join(lines if len(lines) > 1 else [lines[0] + " ..."])

    def member(self, owner, name, value):
        gives = OF_CLASSES.get(f"{owner}.{name}", "Any")
        if isinstance(value, property) or inspect.isdatadescriptor(value):
            return ["    @property", f"    def {name}(self) -> {gives}: ..."] if isinstance(value, property) else [f"    {name}: {gives}"]
        if isinstance(value, (staticmethod, classmethod)):
            function = value.__func__
            rest = self.parameters(function).partition(", ")[2] if isinstance(value, classmethod) else self.parameters(function)
            first = "cls, " if isinstance(value, classmethod) else ""
            return [f"    @{type(value).__name__}", f"    def {name}({(first + rest).rstrip(', ')}) -> {gives}: ..."]
        if inspect.isfunction(value):
            gives = "None" if name == "__init__" else gives
            if name in COMPARISONS:
                return [f"    def {name}(self, other: object, /) -> Any: ..."]
            return [f"    def {name}({self.parameters(value)}) -> {gives}: ..."]
        return [f"    {name}: Any"] if not name.startswith("__") else []

    # Modules.

    def module_text(self, module):
        loaded = importlib.import_module(module)
        listed = getattr(loaded, "__all__", None)
        names = listed or [n for n, v in vars(loaded).items() if not n.startswith("_") and getattr(v, "__module__", module) == module]
        body, classes, modules = [], [], []
        for name in sorted(set(names)):
            value = getattr(loaded, name)
            if inspect.isclass(value):
                classes.append(f"{self.meet(value)} as {name}")
            elif inspect.ismodule(value) and value.__name__ in MODULES:
                modules.append((value.__name__, name))
            elif inspect.isfunction(value):
                body.append(self.function(module, name, value))
            else:
                body.append(f"{name}: {type(value).__name__ if isinstance(value, (str, int)) else 'Any'}")
        classes += [f"{self.meet(v)} as {n}" for n, v in vars(loaded).items() if inspect.isclass(v) and is_reexported(loaded, n, names)]
        text = HEAD.format(next(iter((loaded.__doc__ or "").splitlines()), "").rstrip(".") + ". ")
        text += "\nfrom typing import Any, Callable, Sequence\n"
        text += "".join(import_line(module, other, name) for other, name in modules)
        used = sorted({*classes, *(f"{c} as {c}" for c in words("\n".join(body)) if c in self.classes), *ALIASED(body)})
        text += f"from kiln._stubs import {', '.join(used)}\n" if used else ""
        if module == "kiln":
            body.append("__version__: str")
        return text + "\n" + "\n".join(body) + "\n"


def is_reexported(module, name, names):
    """A class that stands in a module of the surface though its list does not have it: te.Tensor."""
    return name not in names and not name.startswith("_") and module.__name__ in ("kiln.te",)


def ALIASED(body):  # noqa: N802
    return {alias for alias in ("_Shape", "_Scalar", "_Tensors") if any(alias in line for line in body)}


def words(text):
    return set("".join(c if c.isidentifier() or c.isdigit() else " " for c in text).split())


def import_line(module, other, name):
    package, _, last = other.rpartition(".")
    return f"from {package} import {last} as {name}\n" if package else f"import {other} as {name}\n"


def attributes(kind):
    """The public names that a class's methods give its instances."""
    methods = [value for value in vars(kind).values() if inspect.isfunction(value)]
    trees = [ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(method)))) for method in methods]
    targets = [
        t for tree in trees for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for t in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    found = {t.attr: None for t in targets if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self"}
    return [name for name in found if not name.startswith("_")]


def stubs():
    """The text of each stub, by its path from this folder."""
    writer = Writer()
    texts = {}
    for module in MODULES:
        loaded = importlib.import_module(module)
        path = pathlib.Path(*module.split("."))
        is_package = pathlib.Path(loaded.__file__).name == "__init__.py"
        texts[(path / "__init__.pyi") if is_package else path.with_suffix(".pyi")] = writer.module_text(module)
    text = HEAD.format("The classes of Kiln. ") + ALIASES
    for name, kind in writer.classes.items():
        text += f"\n{writer.class_text(name, kind)}\n"
    texts[pathlib.Path("kiln/_stubs.pyi")] = text
    return texts


def main():
    behind = [path for path, text in stubs().items() if not (HERE / path).exists() or (HERE / path).read_text() != text]
    if "--check" in sys.argv:
        sys.exit(f"behind: {', '.join(map(str, behind))}: run client/python/generate_stubs.py" if behind else 0)
    for path, text in stubs().items():
        (HERE / path).write_text(text)


if __name__ == "__main__":
    main()
