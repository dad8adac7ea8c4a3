"""Mistakes in cache_padded, which makes a stage of what a stage reads with a constant around it, or computes of single
elements."""

import kiln
from kiln import te

from .entry import Section

wrong = Section(
    "paddings", "Padded copies",
    "A tensor with what its reader puts around it, which cache_padded makes a stage of.",
)  # fmt: skip


def window(inside, other=lambda A: 0.0):
    """Sums of three neighbours; what is outside of A is not read."""
    A = te.placeholder((16,), name="A")
    k = te.reduce_axis((0, 3), name="k")
    C = te.compute(
        (16,), lambda i: te.sum(te.if_then_else(inside(A, i, i + k - 1), A[i + k - 1], other(A)), axis=k), name="C"
    )
    return A, C, te.create_schedule(C.op)


def is_inside(A, i, at):
    return te.all(at >= 0, at < 16)


@wrong(
    "CACHE_READ",
    "cannot make a padded copy of A for C: C neither reads A under a condition, with a constant where it fails, nor "
    "computes anything of single elements of it",
    kind="Unsupported",
    fix='s.cache_read(A, "global", C)',
)
def padded_copy_without_a_condition():
    A = te.placeholder((16,), name="A")
    C = te.compute((14,), lambda i: A[i] * A[i + 2], name="C")
    s = te.create_schedule(C.op)
    s.cache_padded(A, C)  # <-


@wrong(
    "CACHE_READ",
    "C does not read A",
    fix="s.cache_padded(A, B)",
)
def padded_copy_for_another_reader():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: te.if_then_else(i >= 1, A[i], 0.0), name="B")
    C = te.compute((16,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule(C.op)
    s.cache_padded(A, C)  # <-


@wrong(
    "CACHE_READ",
    "cannot make a padded copy of A for C: the condition is about more than the indices of A",
    kind="Unsupported",
    fix="a condition on the elements of A that are read",
    at="lower",
)
def padded_copy_by_another_index():
    A, C, s = window(lambda A, i, at: te.all(i >= 1, at >= 0, at < 16))
    s.cache_padded(A, C)  # <-
    kiln.lower(s, [A, C])


@wrong(
    "CACHE_READ",
    "cannot make a padded copy of A for C: it is not certain that the condition keeps all indices inside of A",
    kind="Unsupported",
    fix="te.all(at >= 0, at < 16)",
    at="lower",
)
def padded_copy_that_may_be_outside():
    A, C, s = window(lambda A, i, at: at >= 0)
    s.cache_padded(A, C)  # <-
    kiln.lower(s, [A, C])


@wrong(
    "CACHE_READ",
    "cannot make a padded copy of A for C: what stands for A where the condition fails is no constant",
    kind="Unsupported",
    fix="a number",
    at="lower",
)
def padded_copy_around_which_is_data():
    A, C, s = window(is_inside, lambda A: A[0])
    s.cache_padded(A, C)  # <-
    kiln.lower(s, [A, C])


@wrong(
    "CACHE_READ",
    "cannot make a padded copy of A for C: C reads A under conditions at 2 places",
    kind="Unsupported",
    fix="a stage in the definition for each of the two",
    at="lower",
)
def padded_copy_of_two_places():
    A = te.placeholder((16,), name="A")
    C = te.compute(
        (16,), lambda i: te.if_then_else(i >= 1, A[i], 0.0) + te.if_then_else(i >= 2, A[i], 1.0), name="C"
    )
    s = te.create_schedule(C.op)
    s.cache_padded(A, C)  # <-
    kiln.lower(s, [A, C])


@wrong(
    "CACHE_READ",
    "nothing is known of where the index B[i] of A begins and ends",
    kind="Unsupported",
    fix="a stage in the definition for what is gathered",
)
def padded_copy_of_a_gather():
    A = te.placeholder((16,), name="A")
    B = te.placeholder((16,), "int64", name="B")
    C = te.compute((16,), lambda i: te.if_then_else(B[i] >= 0, A[B[i]], 0.0), name="C")
    s = te.create_schedule(C.op)
    s.cache_padded(A, C)  # <-


def text(name, body, declarations, steps, why, fix):
    """A kernel file; what is refused when it is lowered."""
    wrong.text(
        name, "CACHE_READ",
        f"""
    kernel k({declarations}) -> (C: float32[16]) {{
      {body}
      schedule cpu {{
        {steps}  # <-
      }}
    }}
    """,
        why, fix, kind="Unsupported",
    )  # fmt: skip


text(
    "padded_copy_of_what_data_tells", "C[i] = if_then_else(i >= 1, A[min(max(P[i], 0), 15)], 0)",
    "A: float32[16], P: int64[16]", "cache_padded(A, C)",
    "cannot make a padded copy of A for C: which elements of A it reads depends on data",
    "a stage in the definition for what is gathered",
)
text(
    "padded_copy_over_an_extent_that_is_read",
    "C[i] = sum[k < N[0]](if_then_else(0 <= i + k && i + k < 16, A[i + k], 0))",
    "A: float32[16], N: int64[1]", "cache_padded(A, C)",
    "cannot make a padded copy of A for C: data says how often k runs",
    "a stage in the definition, with an extent that sizes tell",
)
text(
    "padded_copy_of_an_index_without_bounds",
    "C[i] = if_then_else(bitwise_xor(i, 5) < 16, A[bitwise_xor(i, 5)], 0)",
    "A: float32[16]", "cache_padded(A, C)",
    "cannot make a padded copy of A for C: nothing is known of where the index i ^ 5 of A begins and ends",
    "a stage in the definition",
)
wrong.text(
    "padded_copy_for_two_readers", "CACHE_READ",
    """
    kernel k(A: float32[n]) -> (B: float32[n], C: float32[n]) {
      B[i] = if_then_else(i >= 1, A[i], 0)
      C[i] = if_then_else(i >= 2, A[i], 0)
      schedule cpu {
        cache_padded(A, B, C)  # <-
      }
    }
    """,
    "what A is padded with is one reader's to say, but cache_padded names 2 readers",
    "cache_padded(A, B) and cache_padded(A, C)",
)  # fmt: skip
wrong.text(
    "padded_copy_in_a_scan", "CACHE_READ",
    """
    kernel k(X: float32[m, n]) -> (S: float32[m, n]) {
      scan t {
        S[0, i] = X[0, i]
        S[t, i] = S[t - 1, i] + if_then_else(i >= 1, X[t, i], 0)
      }
      schedule cpu {
        cache_padded(X, S.update)  # <-
      }
    }
    """,
    "cannot make a padded copy of X for S.update: S.update is computed step by step in a scan",
    "a stage in the definition, before the scan",
    kind="Unsupported",
)  # fmt: skip
