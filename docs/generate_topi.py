"""Writes docs/topi.md: every name of TVM v0.10's topi, and what it is in Kiln.

    build/venv/bin/python docs/generate_topi.py > docs/topi.md
"""

import inspect
import sys

from kiln import Unsupported, topi
from kiln.topi import _absent

# The functions that `from tvm.topi import *`, `tvm.topi.nn`, `.random`, `.sparse`, `.image` and `.vision` give in v0.10,
# and the modules of schedules, each in the order of TVM's files.
NAMES = {
    "topi": """
        identity negative exp erf erf_legalize tanh tan cos cosh sin sinh acos acosh asin asinh atan atanh floor ceil sign trunc
        abs isnan isfinite isinf round log log2 log10 sqrt rsqrt sigmoid clip fixed_point_multiply cast reinterpret fast_exp
        fast_tanh fast_erf ceil_log2 left_shift right_shift broadcast_to add subtract multiply divide floor_divide mod floor_mod
        maximum minimum power greater less equal not_equal greater_equal less_equal logical_and logical_or logical_xor bitwise_and
        bitwise_or bitwise_xor logical_not bitwise_not elemwise_sum full full_like sum all any max min argmax argmin prod
        expand_dims expand_like transpose flip reverse_sequence strided_slice strided_set reshape squeeze concatenate stack split
        take take_legalize gather gather_nd matmul tensordot arange meshgrid repeat tile layout_transform shape sequence_mask
        ndarray_size where one_hot unravel_index sparse_to_dense matrix_set_diag adv_index invert_permutation sliding_window trilu
        sort argsort topk scatter scatter_nd scatter_add sparse_fill_empty_rows sparse_reshape hybrid_argwhere_1d
        hybrid_argwhere_2d hybrid_argwhere_3d hybrid_argwhere_4d hybrid_argwhere_5d argwhere scanop cumsum cumprod einsum unique
        binary_search searchsorted stft
        """,
    "topi.nn": """
        conv1d conv1d_nwc conv1d_ncw group_conv1d_nwc group_conv1d_ncw conv2d conv2d_legalize conv2d_alter_layout
        conv2d_infer_layout conv2d_nchw conv2d_hwcn conv2d_nhwc conv2d_NCHWc conv2d_NCHWc_int8 conv2d_gemm_weight_transform
        conv2d_winograd_weight_transform conv2d_winograd_nnpack_weight_transform group_conv2d_nchw conv group_conv2d_nhwc
        unpack_NCHWc_to_nchw conv2d_winograd_nhwc conv2d_winograd_nhwc_without_weight_transform conv3d_ncdhw conv3d_ndhwc
        conv3d_winograd_weight_transform conv3d_alter_layout correlation_nchw deformable_conv2d_nchw deformable_conv2d_nhwc
        depthwise_conv2d_nchw depthwise_conv2d_nhwc depthwise_conv2d_backward_input_nhwc depthwise_conv2d_backward_weight_nhwc
        depthwise_conv2d_NCHWc depthwise_conv2d_infer_layout relu leaky_relu prelu dilate flatten matmul matmul_legalize dense
        dense_legalize dense_pack dense_alter_layout batch_matmul_legalize batch_matmul scale_shift_nchw scale_shift_nhwc
        scale_shift_nchwc global_pool pool_grad adaptive_pool adaptive_pool3d pool1d pool2d pool3d softmax fast_softmax
        softmax_common log_softmax conv3d_transpose_ncdhw conv3d_transpose_ncdhw_preprocess declaration_conv3d_transpose_impl
        conv3d_transpose_legalize conv2d_transpose_nchw conv2d_transpose_nchw_preprocess declaration_conv2d_transpose_impl
        group_conv2d_transpose_nchw layout_transform conv2d_transpose_legalize conv1d_transpose_ncw binarize_pack binary_dense
        simulated_quantize simulated_dequantize upsampling upsampling3d lrn bitserial_conv2d_nchw bitserial_conv2d_nhwc
        bitserial_conv2d_legalize bitserial_dense batch_norm sparse_dense_sp_rhs sparse_dense_sp_lhs sparse_dense sparse_transpose
        sparse_dense_alter_layout try_get_sparse_input sparse_conv2d try_get_conv2d_sparse_input sparse_add pad mirror_pad
        fifo_buffer depth_to_space space_to_depth space_to_batch_nd batch_to_space_nd nll_loss lstm
        """,
    "topi.random": "threefry_generate threefry_split threefry_test_wrapping uniform normal multinomial",
    "topi.image": "resize1d resize2d resize3d crop_and_resize dilation2d_nchw dilation2d_nhwc affine_grid grid_sample",
    "topi.vision": "reorg get_valid_counts non_max_suppression all_class_non_max_suppression",
    "topi.sparse": "csrmv csrmm dense",
}
MODULES = "generic x86 cuda gpu arm_cpu mali bifrost intel_graphics utils rocm hls hexagon adreno cpp"

HEADER = """\
# topi, name by name

Every name of TVM v0.10's topi. Those with a signature take TVM's arguments and give TVM's numbers; [operators](operators.md) says
what each computes, and has those that TVM lacks. The others are refused when they are called, in the sentence that stands here.
What they give is compared with numpy in `tests/e2e/test_topi.py`, several cases an operator, without elements and over sizes
that are known at the call too.

This page is printed by `docs/generate_topi.py`.
"""

def found(module, name):
    """What stands behind `module.name`, as a cell of the table."""
    value = topi
    for part in [*module.split(".")[1:], name]:
        try:
            value = getattr(value, part)
        except Unsupported as refused:
            return refused.message
    if (value.__doc__ or "").startswith("Refused: "):
        try:
            value()
        except Unsupported as refused:
            return refused.message
    other = "" if value.__name__ == name else f", another name of `{value.__name__}`"
    return f"`{name}{inspect.signature(value)}`{other}".replace("|", "\\|")


def modules():
    for name in MODULES.split():
        if name in _absent.MODULES:
            yield f"| `topi.{name}` | topi.{name} {_absent.MODULES[name]} |"
        elif name == "utils":
            yield "| `topi.utils` | `get_const_int`, `get_const_tuple`, `simplify` and `prod` of sizes |"
        else:
            yield f"| `topi.{name}` | any `schedule_*` of it gives a schedule without steps, which the compiler fills in |"


def page():
    lines = [HEADER]
    for module, names in NAMES.items():
        lines.append(f"\n## {module}\n\n| name | here |\n|---|---|\n")
        lines += [f"| `{name}` | {found(module, name)} |\n" for name in names.split()]
    lines.append("\n## Modules\n\n| name | here |\n|---|---|\n")
    lines += [row + "\n" for row in modules()]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
