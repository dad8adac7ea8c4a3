"""Elements of images moved between space, channels and batches; images made larger; edges mirrored."""

from ..._base.error import invalid, public
from ..._definitions import define
from ..._expressions import size_math
from ..._expressions.arithmetic import apply, as_expr, cast
from ..._expressions.text import shape_text
from .._common import as_size, constant_int, empty, is_empty, tensor
from ._padding import pad

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _image_dims(data, layout, where):
    data = tensor(data, where)
    if layout not in ("NCHW", "NHWC") or data.ndim != 4:
        raise invalid(
            "LAYOUT", f"{where}: layout {layout!r} does not fit {data.name} of shape {shape_text(data.shape)}; known: NCHW, NHWC"
        )
    return data, [layout.index(letter) for letter in "NCHW"]


@_export
def depth_to_space(data, block_size, layout="NCHW", mode="DCR"):
    """Channels as blocks of pixels, block_size by block_size; the place in the block is the slowest part of a channel's
    number ("DCR") or the fastest ("CDR")."""
    where = "topi.nn.depth_to_space"
    data, dims = _image_dims(data, layout, where)
    block = constant_int(block_size, f"{where}: block_size")
    if mode not in ("DCR", "CDR"):
        raise invalid("MODE", f"{where}: unknown mode {mode!r}; known: DCR, CDR")
    n, c, h, w = (data.shape[d] for d in dims)
    channels = as_size(size_math.folded("floordiv", c, block * block))

    def body(*index):
        at = [index[d] for d in dims]
        inside = at[2] % block * block + at[3] % block
        channel = inside * channels + at[1] if mode == "DCR" else at[1] * (block * block) + inside
        place = [None] * 4
        for d, i in zip(dims, (at[0], channel, at[2] // block, at[3] // block)):
            place[d] = i
        return data(*place)

    return define.compute(_ordered(dims, (n, channels, h * block, w * block)), body, name="depth_to_space")


def _ordered(dims, sizes):
    shape = [None] * len(dims)
    for d, size in zip(dims, sizes):
        shape[d] = size
    return shape


@_export
def space_to_depth(data, block_size, layout="NCHW"):
    """Blocks of pixels as channels: the reverse of depth_to_space("DCR")."""
    where = "topi.nn.space_to_depth"
    data, dims = _image_dims(data, layout, where)
    block = constant_int(block_size, f"{where}: block_size")
    n, c, h, w = (data.shape[d] for d in dims)

    def body(*index):
        at = [index[d] for d in dims]
        inside = size_math.folded("floordiv", at[1], c)
        place = (at[0], size_math.folded("floormod", at[1], c), at[2] * block + inside // block, at[3] * block + inside % block)
        return data(*_ordered(dims, place))

    halves = [as_size(size_math.folded("floordiv", size, block)) for size in (h, w)]
    return define.compute(_ordered(dims, (n, c * (block * block), *halves)), body, name="space_to_depth")


@_export
def space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value=0.0):
    """Blocks of the dimensions behind the first, which are padded before, as batches."""
    data = tensor(data, "topi.nn.space_to_batch_nd")
    blocks = [constant_int(b, "topi.nn.space_to_batch_nd: block_shape") for b in block_shape]
    count, rest = len(blocks), data.ndim - 1 - len(blocks)
    before, after = list(pad_before), list(pad_after)
    if any(before) or any(after):
        data = pad(data, [0, *before, *[0] * rest], [0, *after, *[0] * rest], pad_value)
    sizes = [as_size(size_math.folded("floordiv", size, b)) for size, b in zip(data.shape[1:], blocks)]
    batch, whole = data.shape[0], size_math.product(blocks)
    shape = [batch * whole, *sizes, *data.shape[1 + count :]]
    if is_empty(shape):
        return empty(shape, data.dtype, "space_to_batch_nd")

    def body(n, *index):
        inside, place = size_math.folded("floordiv", n, batch), []
        for i, b in zip(reversed(index[:count]), reversed(blocks)):
            place.insert(0, i * b + apply("floormod", inside, b))
            inside = apply("floordiv", inside, b)
        return data(size_math.folded("floormod", n, batch), *place, *index[count:])

    return define.compute(shape, body, name="space_to_batch_nd")


@_export
def batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list):
    """Batches as blocks of the dimensions behind the first, which are cropped then: the reverse of space_to_batch_nd."""
    data = tensor(data, "topi.nn.batch_to_space_nd")
    blocks = [constant_int(b, "topi.nn.batch_to_space_nd: block_shape") for b in block_shape]
    count, whole = len(blocks), size_math.product(blocks)
    batch = as_size(size_math.folded("floordiv", data.shape[0], whole))
    sizes = [size * b - low - high for size, b, low, high in zip(data.shape[1:], blocks, crop_begin_list, crop_end_list)]

    def body(n, *index):
        inside, place = as_expr(0, "int64"), []
        for i, b, low in zip(index, blocks, crop_begin_list):
            at = size_math.folded("add", i, low)
            inside = inside * b + apply("floormod", at, b)
            place.append(apply("floordiv", at, b))
        return data(inside * batch + n, *place, *index[count:])

    return define.compute([batch, *sizes, *data.shape[1 + count :]], body, name="batch_to_space_nd")


@_export
def mirror_pad(data, pad_before, pad_after=None, mode="SYMMETRIC", name="MirrorPadInput"):
    """Padded with the elements next to the edge in reverse, the edge included ("SYMMETRIC") or not ("REFLECT")."""
    data = tensor(data, "topi.nn.mirror_pad")
    before, after = list(pad_before), list(pad_before if pad_after is None else pad_after)
    if mode not in ("SYMMETRIC", "REFLECT") or len(before) != data.ndim or len(after) != data.ndim:
        raise invalid(
            "PAD",
            f"topi.nn.mirror_pad takes the mode SYMMETRIC or REFLECT and sizes for each of the {data.ndim} dimensions of "
            f"{data.name}, but got {mode!r}, {len(before)} and {len(after)}",
        )
    edge = 1 if mode == "SYMMETRIC" else 0

    def body(*index):
        place = []
        for i, size, low, high in zip(index, data.shape, before, after):
            at = size_math.folded("subtract", i, low)
            if low:
                at = apply("select", at < 0, -at - edge, at)
            if high:
                at = apply("select", at < size, at, 2 * (size - 1) + edge - at)
            place.append(at)
        return data(*place)

    shape = [size + low + high for size, low, high in zip(data.shape, before, after)]
    return define.compute(shape, body, name=name)


@_export
def upsampling(data, scale_h, scale_w, layout="NCHW", method="nearest_neighbor", align_corners=False, output_shape=None):
    """Images made larger: each pixel again ("nearest_neighbor"), or mixed from the four around ("bilinear")."""
    where = "topi.nn.upsampling"
    data, dims = _image_dims(data, layout, where)
    return _enlarged(data, dims[2:], (scale_h, scale_w), method, align_corners, where)


@_export
def upsampling3d(data, scale_d, scale_h, scale_w, layout="NCDHW", method="nearest_neighbor",
                 coordinate_transformation_mode="half_pixel", output_shape=None):  # fmt: skip
    """Volumes made larger, as upsampling: "nearest_neighbor"."""
    where = "topi.nn.upsampling3d"
    data = tensor(data, where)
    if layout not in ("NCDHW", "NDHWC") or data.ndim != 5 or method != "nearest_neighbor":
        raise invalid(
            "LAYOUT", f"{where} takes the layouts NCDHW and NDHWC of 5 dimensions and the method nearest_neighbor, but got "
            f"{layout!r} and {method!r}"
        )
    dims = [layout.index(letter) for letter in "DHW"]
    return _enlarged(data, dims, (scale_d, scale_h, scale_w), method, False, where)


def _enlarged(data, dims, scales, method, align_corners, where):
    if method not in ("nearest_neighbor", "bilinear"):
        raise invalid("MODE", f"{where}: unknown method {method!r}; known: nearest_neighbor, bilinear")
    shape = list(data.shape)
    for d, scale in zip(dims, scales):
        shape[d] = round(shape[d] * scale) if isinstance(shape[d], int) else as_size(as_expr(shape[d], "int64") * int(scale))
    if method == "nearest_neighbor":

        def nearest(*index):
            place = list(index)
            for d, scale in zip(dims, scales):
                whole = float(scale).is_integer()
                at = index[d] // int(scale) if whole else cast("int64", apply("floor", cast("float32", index[d]) / scale))
                place[d] = at if whole else apply("min", at, data.shape[d] - 1)
            return data(*place)

        return define.compute(shape, nearest, name="upsampling")

    own = data.dtype if data.dtype == "float64" else "float32"

    def mixed(*index):
        parts = [_neighbours(index[d], data.shape[d], shape[d], align_corners) for d in dims]
        total = None
        for corner in range(1 << len(dims)):
            place, weight = list(index), None
            for bit, (d, (low, high, share)) in enumerate(zip(dims, parts)):
                upper = corner >> bit & 1
                place[d] = high if upper else low
                factor = share if upper else 1.0 - share
                weight = factor if weight is None else weight * factor
            value = cast(own, data(*place)) * cast(own, weight)
            total = value if total is None else total + value
        return cast(data.dtype, total)

    return define.compute(shape, mixed, name="upsampling")


def _neighbours(i, size, enlarged, align_corners):
    """The places between which a pixel lies, and the share of the second: by the middles of pixels, or by the corners."""
    if align_corners:
        at = cast("float32", i) * ((size - 1) / (enlarged - 1) if enlarged != 1 else 0.0)
    else:
        at = (cast("float32", i) + 0.5) * (size / enlarged) - 0.5
    at = apply("min", apply("max", at, 0.0), float(size - 1))
    low = apply("min", apply("max", cast("int64", apply("floor", at)), 0), size - 1)
    high = apply("min", low + 1, size - 1)
    return low, high, at - cast("float32", low)
