"""Tensors as JSON and back, what they are computed from included: a definition without a daemon.

    load_json(save_json(C))          ->  a tensor as C, of placeholders of its own
    load_json(save_json([A, B, C]))  ->  the list, as build takes it
"""

import json

from google.protobuf import json_format

from .._base.error import invalid, public
from .._definitions.kernel import Kernel
from .._definitions.tensor import Operation, Tensor, operations_below
from ..v1 import kernel_pb2
from .encode import encode

_FORMAT = 1


@public
def save_json(tensors):
    """A tensor, a list of them, or an operation, as JSON."""
    operation = tensors if isinstance(tensors, Operation) else None
    asked = operation.outputs if operation is not None else list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
    for each in asked:
        if not isinstance(each, Tensor):
            raise invalid(
                "NOT_A_TENSOR",
                f"save_json takes a tensor, a list of them or an operation, but got {type(each).__name__}; a schedule is saved by "
                "s.save(path), a built function by f.export_library(path)",
            )
    arguments = [*_inputs_of(asked), *dict.fromkeys(each for each in asked if each.op.kind != "placeholder")]
    encoded = encode(arguments, None, "main")
    return json.dumps({
        "kiln_tensors": _FORMAT,
        "definition": json_format.MessageToDict(encoded.definition),
        "source_map": json_format.MessageToDict(encoded.source_map),
        "tensors": [arguments.index(each) for each in asked],
        "single": operation is None and not isinstance(tensors, (list, tuple)),
        "operation": operation is not None,
    })


def _inputs_of(tensors):
    """The placeholders below, in order; the states of scans are no inputs."""
    found = [op for op in operations_below([each.op for each in tensors]) if op.kind == "placeholder"]
    return [op.output(0) for op in found if op.scan is None]


@public
def load_json(json_str):
    """What save_json was given, anew: of placeholders of its own."""
    try:
        saved = json.loads(json_str)
        if saved["kiln_tensors"] != _FORMAT:
            raise KeyError
        definition = json_format.ParseDict(saved["definition"], kernel_pb2.Definition())
        source_map = json_format.ParseDict(saved["source_map"], kernel_pb2.SourceMap())
        made = Kernel(definition, source_map).tensors()
        tensors = [made[position] for position in saved["tensors"]]
        if saved.get("operation"):
            return tensors[0].op
        return tensors[0] if saved["single"] else tensors
    except (ValueError, KeyError, TypeError, IndexError, json_format.ParseError):
        raise invalid("SAVED_TENSORS", "load_json takes what kiln.ir.save_json gave, which this is not") from None
