"""Mistakes with spectra, random numbers and images, and the names of classic topi that Kiln has not."""

from kiln import te, topi

from .entry import Section

wrong = Section(
    "foreign_topi", "Spectra, random states, and what topi lacks",
    "Operators that are there check their operands when they are called; a name of TVM's topi that is not there says what to "
    "write instead when it is called. All of them are in topi.md.",
)  # fmt: skip


@wrong(
    "RANDOM_STATE",
    "topi.random.threefry_generate takes a state of 10 words of uint64, but seed is int64 of shape (1,); the first state of a seed "
    "is [0, 0, 0, seed, 0, 0, 0, 0, 1 << 63, 0]",
    fix='gen = te.placeholder((10,), "uint64", name="gen")',
)
def seed_in_place_of_a_state():
    seed = te.placeholder((1,), "int64", name="seed")
    topi.random.uniform(seed, 0.0, 1.0, (4,), "float32")  # <-


@wrong(
    "RANDOM_TYPE",
    "topi.random.uniform gives float32 or float64, not float16; topi.cast makes others of it",
    fix='topi.cast(topi.random.uniform(gen, 0.0, 1.0, (4,), "float32")[1], "float16")',
)
def random_numbers_of_half_precision():
    gen = te.placeholder((10,), "uint64", name="gen")
    topi.random.uniform(gen, 0.0, 1.0, (4,), "float16")  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.stft takes rows of data, a vector as window and an output_shape of 4 dimensions, but X has shape (32,), w (8,) and the "
    "output (1, 5, 9, 2)",
    fix="topi.expand_dims(X, 0)",
)
def spectrum_of_a_vector():
    X, w = te.placeholder((32,), name="X"), te.placeholder((8,), name="w")
    topi.stft(X, 8, 3, 8, w, False, True, (1, 5, 9, 2))  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "topi.dft takes real and imaginary parts of one shape and type, but X is float32 of shape (4, 8) and Y is float32 of shape (4, 6)",
    fix="imaginary parts of shape (4, 8)",
)
def transform_of_unequal_parts():
    X, Y = te.placeholder((4, 8), name="X"), te.placeholder((4, 6), name="Y")
    topi.dft(X, Y, False)  # <-


@wrong(
    "CORRELATION",
    "topi.nn.correlation_nchw takes two tensors of one shape (n, c, h, w) and an odd kernel_size, but got (1, 2, 8, 8), (1, 2, 8, 8) "
    "and 2",
    fix="topi.nn.correlation_nchw(X, Y, 3, 2, 1, 1, 2, True)",
)
def correlation_of_even_windows():
    X, Y = te.placeholder((1, 2, 8, 8), name="X"), te.placeholder((1, 2, 8, 8), name="Y")
    topi.nn.correlation_nchw(X, Y, 2, 2, 1, 1, 2, True)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.nn.fifo_buffer: x has shape (4,), but must have as many dimensions as buffer of shape (8, 4)",
    fix="topi.nn.fifo_buffer(topi.expand_dims(x, 0), buffer, 0)",
)
def vector_into_a_queue_of_rows():
    x, buffer = te.placeholder((4,), name="x"), te.placeholder((8, 4), name="buffer")
    topi.nn.fifo_buffer(x, buffer, 0)  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "topi.nn.binary_dense packs numbers into bits, which Kiln's operators do not; products of int8 are topi.nn.dense or conv2d with "
    'out_dtype="int32", and bits are counted by te.popcount in a te.compute',
    fix='topi.nn.dense(X, W, out_dtype="int32")',
    kind="Unsupported",
)
def product_of_bits():
    X, W = te.placeholder((4, 8), "int8", name="X"), te.placeholder((2, 8), "int8", name="W")
    topi.nn.binary_dense(X, W)  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "topi.image.resize2d is left out; a pixel between others is read by a te.compute as topi.nn.upsampling writes it, and resizing by "
    "a factor is topi.nn.upsampling",
    fix="topi.nn.upsampling(X, 2, 2)",
    kind="Unsupported",
)
def image_resized():
    X = te.placeholder((1, 3, 8, 8), name="X")
    topi.image.resize2d(X, None, (16, 16))  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "topi.nn.dropout draws other numbers at each step, which a program has; write program.dropout(x, rate), or x times a mask of "
    "topi.random.uniform",
    fix='program.dropout(program.input((4, 8), name="X"), 0.1)',
    kind="Unsupported",
)
def dropout_outside_of_a_program():
    X = te.placeholder((4, 8), name="X")
    topi.nn.dropout(X, 0.1)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.nn.embedding: the table T has shape (8,), but must have two dimensions: a row for each word",
    fix="a table of shape (words, width)",
)
def embedding_without_a_width():
    words, T = te.placeholder((4,), "int32", name="words"), te.placeholder((8,), name="T")
    topi.nn.embedding(words, T)  # <-
