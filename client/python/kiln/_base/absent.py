"""What classic programs call and Kiln has not: each refused with what to use instead."""

from .error import public, unsupported

_FOREIGN = (
    "runs code that is not part of the definition, which Kiln does not; instead of a cblas, mkl or "
    "cublas matmul write te.sum (without a schedule), of a cudnn convolution te.sum over its window, of "
    "sort or argsort topi.sort or topi.argsort, of a loop body te.compute, te.scan "
    "or te.if_then_else, and of a random generator numpy"
)
_TREES = "shows the compiler's own trees, which stay in the daemon; kiln.lower(s, args) prints the loops"
_REGISTRY = "takes part in a registry of functions, which Kiln has not; call kiln.build's result directly"

# Steps of a stage and of a schedule that Kiln has not, and what to do instead; those that the step table has meanwhile are not
# looked for here.
ABSENT_STEPS = {"set_axis_separators": "leave it out, memory is one row of elements"}
ABSENT_STEPS_OF_A_SCHEDULE = {"create_group": "attach each stage of the group by its own compute_at"}
IDLE_STEPS = ("set_store_predicate",)  # taken without effect

# name -> what it does, and the way out
_ABSENT = {
    "extern": _FOREIGN,
    "extern_primfunc": _FOREIGN,
    "call_packed": _FOREIGN,
    "create_prim_func": (
        "makes a TensorIR function, which Kiln has not; give the tensors to kiln.build([A, B]), or a "
        "schedule from te.create_schedule"
    ),
    "InferBound": _TREES,
    "ScheduleOps": _TREES,
    **{
        name: _TREES for name in (
            "CreateAttachPath", "CreateReadGraph", "PostDFSOrder", "ScanFixPointAnalysis", "ScanGetBody", "SchedulePostProcToPrimFunc",
        )
    },
    "trace": "calls back into Python, which a kernel does not; make the tensor to look at an output",
    "get_global_func": _REGISTRY,
    "register_func": _REGISTRY,
}  # fmt: skip


def _refusal(name, prefix):
    def refuse(*args, **kwargs):
        raise unsupported("NOT_PART_OF_KILN", f"{prefix}{name} {_ABSENT[name]}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: it {_ABSENT[name]}."
    return public(refuse)


class Refused:
    """A module of classic te of which no name is served."""

    def __init__(self, name, sentence):
        self.__name__ = name
        self._sentence = sentence

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise unsupported("NOT_PART_OF_KILN", f"{self.__name__}.{name} {self._sentence}")

    def __call__(self, *args, **kwargs):
        raise unsupported("NOT_PART_OF_KILN", f"{self.__name__} {self._sentence}")

    def __repr__(self):
        return f"{self.__name__}, which {self._sentence}"


hybrid = Refused(
    "te.hybrid",
    "compiles the text of a Python function, which Kiln does not; write the tensors with te.compute, "
    "te.scan and te.if_then_else",
)
rpc = Refused(
    "rpc",
    "is not needed: the daemon is the remote end; kiln.connect(\"HOST:PORT\", token=...) and then "
    "kiln.build and kiln.nd.array work there",
)
ir_pass = Refused(
    "ir_pass",
    "works on the compiler's own trees, which stay in the daemon; kiln.lower(..., after=PASS) shows the "
    "loops after each pass",
)

ir_builder = Refused(
    "ir_builder",
    "writes loops by hand, which Kiln makes itself; write the tensors with te.compute and te.scan, and say "
    "how they run with a schedule",
)
tuners = {
    name: Refused(
        name,
        "searches for schedules by hand; leave the schedule out, and the daemon chooses one, or call "
        "kiln.tune(...), which measures schedules there and keeps the fastest for every later build",
    )
    for name in ("autotvm", "auto_scheduler", "meta_schedule")
}
graphs = {
    name: Refused(
        name,
        "describes whole networks; Kiln compiles kernels, of tensors made with kiln.te and kiln.topi",
    )
    for name in ("relay", "relax")
}
scripts = {
    name: Refused(name, "is TensorIR, which Kiln has not; write the tensors with te.compute and te.scan")
    for name in ("script", "IRModule")
}

TE = (
    "CreateAttachPath", "CreateReadGraph", "InferBound", "PostDFSOrder", "ScanFixPointAnalysis", "ScanGetBody", "ScheduleOps",
    "SchedulePostProcToPrimFunc", "extern", "extern_primfunc", "create_prim_func", "trace",
)  # fmt: skip
TIR = ("call_packed",)
ROOT = ("get_global_func", "register_func")

for _name in (*TE, *TIR):
    globals()[_name] = _refusal(_name, "tir." if _name in TIR else "te.")
for _name in ROOT:
    globals()[_name] = _refusal(_name, "")
