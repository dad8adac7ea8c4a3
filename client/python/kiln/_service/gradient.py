"""Gradients: tensors that the daemon makes of others, to be computed with and composed as any."""

from .._base.error import invalid, public
from .._definitions.encode import Encoder
from .._definitions.instantiate import Binding, Instance
from .._definitions.kernel import Kernel
from .._definitions.tensor import Tensor, operations_below
from .._expressions import size_math
from .._expressions.text import shape_text
from ..v1 import gradient_pb2 as wire
from .connection import connection_or_default


@public
def gradient(output, inputs, head=None, *, connection=None):
    """The gradients of `output` with respect to each of `inputs`, tensors that it is computed from: a list of
    tensors, which read the same ones and can be scheduled, built and differentiated like any other.

    `head` is what some result changes by with each element of the output, a tensor of its shape, or with more
    dimensions in front, which the gradients get as well. Without a head the gradient of an input is the
    Jacobian, of shape (*output.shape, *input.shape): of an output without dimensions the gradient itself.
    """
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    _check(output, inputs, head)
    arguments = _placeholders(output, inputs)
    arguments += [each for each in (output, *inputs) if each not in arguments]
    encoder = Encoder("gradient", list(dict.fromkeys(arguments)))
    request = wire.DifferentiateRequest(
        definition=encoder.definition,
        source_map=encoder.source_map,
        leading=head.ndim - output.ndim if head is not None else 0,
        identity=head is None,
    )
    encoder.set_tensor(request.outputs.add(), output)
    for each in inputs:
        encoder.set_tensor(request.inputs.add(), each)
    connection = connection_or_default(connection)
    reply = connection.call("KernelService/Differentiate", request, wire.DifferentiateResponse)
    instance = _instance(reply, encoder, operations_below([each.op for each in arguments]), head)
    return [instance.output(tensor) for tensor in reply.gradients]


def _check(output, inputs, head):
    for role, tensor in (("output", output), *(("input", each) for each in inputs), ("head", head)):
        if not isinstance(tensor, Tensor) and not (role == "head" and tensor is None):
            raise invalid(
                "GRADIENT",
                f"the {role} of te.gradient must be a tensor, but is {type(tensor).__name__}; write "
                "te.gradient(Y, [A, B])",
            )
    if not inputs:
        raise invalid("GRADIENT", f"te.gradient of {output.name} has no inputs; write te.gradient(Y, [A, B])")
    if head is None:
        return
    if head.dtype != output.dtype:
        raise invalid(
            "GRADIENT_HEAD", f"the head {head.name} is {head.dtype}, but {output.name} is {output.dtype}; cast it"
        )
    own = head.shape[head.ndim - output.ndim :] if head.ndim >= output.ndim else ()
    if len(own) != output.ndim or not all(map(size_math.equal, own, output.shape)):
        raise invalid(
            "GRADIENT_HEAD",
            f"the head {head.name} has shape {shape_text(head.shape)}, but must end with that of {output.name}, "
            f"{shape_text(output.shape)}",
        )


def _placeholders(output, inputs):
    """The tensors that are given, without states of scans, in the order of the program."""
    operations = operations_below([each.op for each in (output, *inputs)])
    return [op.output(0) for op in operations if op.kind == "placeholder" and op.scan is None]


def _instance(reply, encoder, operations, head):
    """The stages of the reply on the tensors whose stages were sent, which have the same numbers in it."""
    kernel = Kernel(reply.definition, reply.source_map)
    binding = Binding(kernel)
    sizes = list(encoder.sizes)
    if head is not None:
        sizes += head.shape[: len(reply.definition.variables) - len(sizes)]
        binding.tensors[reply.heads[0].stage] = head
        binding.ranks[reply.heads[0].stage] = head.ndim
    binding.sizes = dict(enumerate(sizes))
    stages = {encoder.stage_ids[id(op)]: op for op in operations}
    for stage, op in stages.items():
        binding.tensors[stage] = op.output(0)
        binding.ranks[stage] = op.output(0).ndim
    instance = Instance(binding)
    for stage, op in stages.items():
        instance.put(stage, [op.output(i) for i in range(op.num_outputs)])
    return instance
