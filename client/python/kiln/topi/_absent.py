"""What classic topi has and Kiln has not: each name with what to write instead."""

from .._base.absent import Refused
from .._base.error import public, unsupported
from .._base.suggest import answers

_NETWORKS = (
    "rewrites operators of a relay network for one target, which Kiln does not; call the operator itself, the compiler "
    "chooses layouts and types of its own"
)
_WINOGRAD = (
    "prepares filters for Winograd's algorithm, which is the compiler's to choose; give the filters as they are to "
    "topi.nn.conv2d"
)
_PARTS = "is a part of another operator of classic topi; call topi.nn.conv2d_transpose_nchw or conv3d_transpose_ncdhw"
_BITS = (
    "packs numbers into bits, which Kiln's operators do not; products of int8 are topi.nn.dense or conv2d with "
    "out_dtype=\"int32\", and bits are counted by te.popcount in a te.compute"
)
_QUANTISED = (
    "is of quantised networks, which topi here leaves out; write round and clip of x / scale, and the product with the "
    "scale, with topi.round, topi.clip and topi.multiply"
)
_SPARSE = (
    "is of sparse tensors, which topi here leaves out; a row of a sparse matrix is a te.sum over "
    "te.reduce_axis((ptr[i], ptr[i + 1])), as docs/language.md shows"
)
_DEFORMED = (
    "reads at places between pixels that are data; write it with te.compute: the four pixels around, each in a "
    "te.if_then_else, times their shares, and topi.nn.dense of what was read"
)
_HYBRID = "is a part of topi.argwhere, written in te.hybrid; call topi.argwhere"
_EVERYWHERE = "has schedules for one kind of machine; leave the schedule out, the compiler chooses one for the device"

ROOT = {
    "erf_legalize": _NETWORKS, "take_legalize": _NETWORKS,
    **{f"hybrid_argwhere_{d}d": _HYBRID for d in range(1, 6)},
    "scanop": "runs a function of Python at each step; write topi.cumsum, topi.cumprod or te.scan",
    "binary_search": "writes the loops of a search; call topi.searchsorted",
    "sparse_fill_empty_rows": _SPARSE, "sparse_reshape": _SPARSE,
    "dynamic_strided_slice": (
        "cuts where tensors say, so that the shape of the result is data; write te.compute over the shape that is wanted, and "
        "add what the tensor has to the index"
    ),
}  # fmt: skip

NN = {
    **{
        name: _NETWORKS for name in (
            "batch_matmul_legalize", "conv2d_alter_layout", "conv2d_infer_layout", "conv2d_legalize", "conv2d_transpose_legalize",
            "conv3d_alter_layout", "conv3d_transpose_legalize", "dense_alter_layout", "dense_legalize", "depthwise_conv2d_infer_layout",
            "matmul_legalize", "sparse_dense_alter_layout",
        )
    },
    **{
        name: _WINOGRAD for name in (
            "conv2d_gemm_weight_transform", "conv2d_winograd_nhwc_without_weight_transform", "conv2d_winograd_nnpack_weight_transform",
            "conv2d_winograd_weight_transform", "conv3d_winograd_weight_transform",
        )
    },
    **{
        name: _PARTS for name in (
            "conv2d_transpose_nchw_preprocess", "conv3d_transpose_ncdhw_preprocess", "declaration_conv2d_transpose_impl",
            "declaration_conv3d_transpose_impl",
        )
    },
    **{
        name: _BITS for name in (
            "binarize_pack", "binary_dense", "bitpack", "bitserial_conv2d_legalize", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc",
            "bitserial_dense",
        )
    },
    **{name: _QUANTISED for name in ("conv2d_NCHWc_int8", "simulated_dequantize", "simulated_quantize")},
    **{
        name: _SPARSE for name in (
            "sparse_add", "sparse_conv2d", "sparse_dense", "sparse_dense_sp_lhs", "sparse_dense_sp_rhs", "sparse_transpose",
            "try_get_conv2d_sparse_input", "try_get_sparse_input",
        )
    },
    "deformable_conv2d_nchw": _DEFORMED, "deformable_conv2d_nhwc": _DEFORMED,
    "dropout": (
        "draws other numbers at each step, which a program has; write program.dropout(x, rate), or x times a mask of "
        "topi.random.uniform"
    ),
    "dense_pack": "packs filters for one kind of machine, as the compiler does by itself; call topi.nn.dense",
}  # fmt: skip

# Modules, of which no name is there.
MODULES = {
    "image": (
        "is left out; a pixel between others is read by a te.compute as topi.nn.upsampling writes it, and resizing by a factor "
        "is topi.nn.upsampling"
    ),
    "sparse": _SPARSE,
    "vision": "is left out; boxes are sorted by topi.argsort, and compared by a te.compute",
    "testing": "has what topi's own tests use; write what is expected in numpy, and leave the schedule out",
    "cpp": "is the C++ half of classic topi; the operators of topi are all there is",
    **{
        name: _EVERYWHERE for name in (
            "adreno", "arm_cpu", "bifrost", "gpu", "hexagon", "hls", "intel_graphics", "mali", "rocm",
        )
    },
}  # fmt: skip


def _refusal(prefix, name, sentence):
    def refuse(*args, **kwargs):
        raise unsupported("NOT_PART_OF_KILN", f"{prefix}.{name} {sentence}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: it {sentence}."
    return public(refuse)


def refusing(module, known, absent, modules=()):
    """A module's `__getattr__`: what is absent is refused when it is called, any other name is unknown."""
    unknown, prefix = answers(module, known), module.removeprefix("kiln.")

    def answer(name):
        if name in absent:
            return _refusal(prefix, name, absent[name])
        if name in modules:
            return Refused(f"{prefix}.{name}", modules[name])
        return unknown(name)

    return answer
