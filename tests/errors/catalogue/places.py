"""Mistakes with operators of topi about orders, places and blocks."""

from kiln import te, topi

from .entry import Section

wrong = Section(
    "places", "Orders, places and blocks",
    "Operators that sort, scatter, mask, transform layouts and move pixels. What does not fit is said when they are called.",
)  # fmt: skip


@wrong(
    "BROADCAST",
    "topi.expand_like: A has 1 dimension and gets 1, but B has 3",
    fix="topi.expand_like(A, B, [1, 2])",
)
def expand_like_of_too_few_axes():
    A, B = te.placeholder((3,), name="A"), te.placeholder((3, 4, 5), name="B")
    topi.expand_like(A, B, [1])  # <-


@wrong(
    "AXIS_RANGE",
    "topi.roll: A has 2 dimensions; name an axis",
    fix="topi.roll(A, 1, axis=1)",
)
def roll_without_an_axis():
    A = te.placeholder((3, 4), name="A")
    topi.roll(A, 1)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.trilu takes matrices, but A has 1 dimension",
    fix="a tensor of 2 dimensions or more",
)
def triangle_of_a_vector():
    A = te.placeholder((3,), name="A")
    topi.trilu(A, 0, True)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.diag takes a vector or a matrix of known sizes, but got (3, 3, 3)",
    fix="te.compute((3, 3), lambda b, i: A[b, i, i])",
)
def diagonal_of_a_volume():
    A = te.placeholder((3, 3, 3), name="A")
    topi.diag(A)  # <-


@wrong(
    "MODE",
    "topi.meshgrid: unknown indexing 'ji'; known: ij, xy",
    fix='"xy"',
)
def grid_in_an_order_that_is_not_there():
    A = te.placeholder((3,), name="A")
    topi.meshgrid([A, A], "ji")  # <-


@wrong(
    "DIMENSIONS",
    "topi.sliding_window: A has 2 dimensions from 1 on, but there are 1 sizes of windows and 1 strides",
    fix="topi.sliding_window(A, 1, (2, 2), (1, 1))",
)
def windows_for_some_dimensions_only():
    A = te.placeholder((3, 8, 8), name="A")
    topi.sliding_window(A, 1, (2,), (1,))  # <-


@wrong(
    "AXIS_RANGE",
    "topi.sequence_mask: the axis of time must be 0 or 1 of at least 2 dimensions, but is 2",
    fix="axis=1, after topi.transpose",
)
def mask_along_the_third_dimension():
    A, n = te.placeholder((3, 8, 8), name="A"), te.placeholder((8,), "int32", name="n")
    topi.sequence_mask(A, n, axis=2)  # <-


@wrong(
    "GATHER",
    "topi.adv_index: A has 1 dimension, but there are 2 tensors of indices",
    fix="topi.adv_index(A, [i])",
)
def more_indices_than_dimensions():
    A, i = te.placeholder((3,), name="A"), te.placeholder((2,), "int32", name="i")
    topi.adv_index(A, [i, i])  # <-


@wrong(
    "LAYOUT",
    "topi.layout_transform: 'NCc' is no layout; write one as NCHW or NCHW16c",
    fix='"NC4c"',
)
def layout_with_a_block_of_nothing():
    A = te.placeholder((3, 8), name="A")
    topi.layout_transform(A, "NC", "NCc")  # <-


@wrong(
    "LAYOUT",
    "topi.layout_transform: NC to NW does not fit A of shape (3, 8)",
    fix='"CN"',
)
def layout_of_other_letters():
    A = te.placeholder((3, 8), name="A")
    topi.layout_transform(A, "NC", "NW")  # <-


@wrong(
    "SCATTER",
    "topi.scatter_elements: A has 2 dimensions, so the indices and the updates have as many, but their shapes"
    " are (2,) and (2,)",
    fix="indices and updates of 2 dimensions",
)
def updates_of_another_rank():
    A, i = te.placeholder((3, 8), name="A"), te.placeholder((2,), "int32", name="i")
    topi.scatter(A, i, te.placeholder((2,), name="U"))  # <-


@wrong(
    "SCATTER",
    "topi.scatter_nd: indices of shape (2, 5) and updates of shape (5, 8) do not fit A of shape (3, 8): the "
    "first dimension of the indices holds one index for each of the first dimensions of the data, the updates"
    " have the others and those that are left",
    fix="updates of shape (5,)",
)
def updates_that_do_not_fit_the_indices():
    A, i = te.placeholder((3, 8), name="A"), te.placeholder((2, 5), "int32", name="i")
    topi.scatter_nd(A, i, te.placeholder((5, 8), name="U"))  # <-


@wrong(
    "SCATTER",
    "topi.sparse_to_dense: indices of shape (5, 3) do not fit an output of 2 dimensions; write (count, 2)",
    fix="indices of shape (5, 2)",
)
def sparse_rows_of_another_length():
    i = te.placeholder((5, 3), "int32", name="i")
    topi.sparse_to_dense(i, (4, 4), 1.0)  # <-


@wrong(
    "DIAGONAL",
    "topi.matrix_set_diag takes matrices, k or (k0, k1) in this order, and align of RIGHT_LEFT, LEFT_RIGHT, "
    "LEFT_LEFT or RIGHT_RIGHT, but got k=(1, 0) and align='RIGHT_LEFT'",
    fix="(0, 1)",
)
def diagonals_in_the_wrong_order():
    A, d = te.placeholder((3, 3), name="A"), te.placeholder((2, 3), name="d")
    topi.matrix_set_diag(A, d, (1, 0))  # <-


@wrong(
    "VALID_COUNT",
    "topi.argsort: valid_count belongs to vision, which Kiln's topi has not; slice the data",
    fix="topi.argsort(topi.strided_slice(A, [0, 0], [3, 5]))",
)
def valid_count_of_argsort():
    A, n = te.placeholder((3, 8), name="A"), te.placeholder((3,), "int32", name="n")
    topi.argsort(A, n)  # <-


@wrong(
    "RETURN_TYPE",
    "topi.topk: unknown ret_type 'value'; known: both, values, indices",
    fix='"values"',
)
def results_of_topk_that_are_not_there():
    A = te.placeholder((3, 8), name="A")
    topi.topk(A, 2, ret_type="value")  # <-


@wrong(
    "TOPK",
    "topi.topk: k is 9, but dimension 1 of A is 8",
    fix="k=8, or k=0 for all",
)
def more_than_there_are():
    A = te.placeholder((3, 8), name="A")
    topi.topk(A, 9)  # <-


@wrong(
    "SEARCHSORTED",
    "topi.searchsorted: A has 2 dimensions, but must have 1 or, as v, 1",
    fix="values of shape (3, 5)",
)
def sorted_sequence_of_another_rank():
    A, v = te.placeholder((3, 8), name="A"), te.placeholder((5,), name="v")
    topi.searchsorted(A, v)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.unique takes a vector, but A has 2 dimensions",
    fix="topi.unique(topi.reshape(A, (-1,)))",
)
def unique_rows():
    A = te.placeholder((3, 8), name="A")
    topi.unique(A)  # <-


@wrong(
    "ARGWHERE",
    "topi.argwhere: the output has one column for each of the 2 dimensions of A, so its shape is (count, 2)",
    fix="topi.argwhere((4, 2), A)",
)
def argwhere_of_a_flat_shape():
    A = te.placeholder((3, 8), name="A")
    topi.argwhere((4,), A)  # <-


@wrong(
    "LAYOUT",
    "topi.nn.depth_to_space: layout 'CHWN' does not fit A of shape (1, 4, 8, 8); known: NCHW, NHWC",
    fix='"NCHW"',
)
def blocks_in_an_unknown_layout():
    A = te.placeholder((1, 4, 8, 8), name="A")
    topi.nn.depth_to_space(A, 2, "CHWN")  # <-


@wrong(
    "MODE",
    "topi.nn.depth_to_space: unknown mode 'CRD'; known: DCR, CDR",
    fix='"CDR"',
)
def blocks_in_an_unknown_order():
    A = te.placeholder((1, 4, 8, 8), name="A")
    topi.nn.depth_to_space(A, 2, mode="CRD")  # <-


@wrong(
    "PAD",
    "topi.nn.mirror_pad takes the mode SYMMETRIC or REFLECT and sizes for each of the 2 dimensions of A, but "
    "got 'WRAP', 2 and 2",
    fix='"REFLECT"',
)
def edges_mirrored_in_an_unknown_way():
    A = te.placeholder((8, 8), name="A")
    topi.nn.mirror_pad(A, (1, 1), mode="WRAP")  # <-


@wrong(
    "LAYOUT",
    "topi.nn.upsampling3d takes the layouts NCDHW and NDHWC of 5 dimensions and the method nearest_neighbor, "
    "but got 'NCDHW' and 'trilinear'",
    fix='method="nearest_neighbor"',
)
def volume_made_larger_by_mixing():
    A = te.placeholder((1, 1, 4, 4, 4), name="A")
    topi.nn.upsampling3d(A, 2, 2, 2, method="trilinear")  # <-


@wrong(
    "MODE",
    "topi.nn.upsampling: unknown method 'cubic'; known: nearest_neighbor, bilinear",
    fix='method="bilinear"',
)
def image_made_larger_in_an_unknown_way():
    A = te.placeholder((1, 1, 4, 4), name="A")
    topi.nn.upsampling(A, 2, 2, method="cubic")  # <-


@wrong(
    "PADDING",
    "topi.nn.conv1d_transpose_ncw: output_padding (2,) must be less than the strides (2,)",
    fix="output_padding=1",
)
def more_output_padding_than_stride():
    A, F = te.placeholder((1, 2, 8), name="A"), te.placeholder((2, 4, 3), name="F")
    topi.nn.conv1d_transpose_ncw(A, F, 2, output_padding=2)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.nn.conv2d_NCHWc takes data (n, c, h, w, b) and filters of 6 dimensions",
    fix="topi.nn.conv2d_nchw(A, F, 1, 0, 1)",
)
def blocks_that_are_plain():
    A, F = te.placeholder((1, 8, 6, 6), name="A"), te.placeholder((4, 8, 3, 3), name="F")
    topi.nn.conv2d_NCHWc(A, F, 1, 0, 1)  # <-


@wrong(
    "LSTM",
    "topi.nn.lstm has no projection and no peepholes; write the layer as a te.scan",
    fix="a te.scan of the layer",
)
def lstm_with_a_projection():
    X, W = te.placeholder((5, 2, 3), name="X"), te.placeholder((16, 3), name="W")
    topi.nn.lstm(X, W, te.placeholder((16, 4)), proj=W)  # <-


@wrong(
    "LAYOUT",
    "topi.nn.lstm: weight_layout 'IFG' must have the letters I, F, G and O once each",
    fix='"IFGO"',
)
def lstm_with_a_gate_missing():
    X, W = te.placeholder((5, 2, 3), name="X"), te.placeholder((16, 3), name="W")
    topi.nn.lstm(X, W, te.placeholder((16, 4)), weight_layout="IFG")  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.nn.lstm takes data of 3 dimensions and weights of 2, but got (2, 3), (16, 3) and (16, 4)",
    fix="data of shape (1, 2, 3)",
)
def lstm_of_one_step():
    X, W = te.placeholder((2, 3), name="X"), te.placeholder((16, 3), name="W")
    topi.nn.lstm(X, W, te.placeholder((16, 4)))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "topi.nn.matmul: the bias is True; write transpose_a=True",
    fix="topi.nn.matmul(A, A, transpose_a=True)",
)
def product_whose_bias_is_true():
    A = te.placeholder((3, 4), name="A")
    topi.nn.matmul(A, A, True)  # <-
