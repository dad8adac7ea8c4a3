"""Reads outside of a tensor, in kernel files."""

from .entry import Section

wrong = Section(
    "text_bounds", "Bounds in kernel files",
    "A read that is surely outside of its tensor is refused with the row it reaches and those there are. One that may be "
    "outside is checked while the kernel runs, and stops the call with the index.",
)  # fmt: skip

WAY_OUT = "; guard the read with if_then_else or change the shape"


def bounds(name, kernel, says, fix, call=()):
    """A read past what is there: proved when it is built, or found when it is called."""
    reason = "INDEX_OUT_OF_RANGE" if call else "READ_BOUNDS"
    says += "" if call else WAY_OUT
    wrong.text(name, reason, kernel, says, fix, at="run" if call else "build", call=call)


bounds(
    "row_after_the_last",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {
      B[i] = A[i + 1] - A[i]  # <-
    }
    """,
    "B reads A[i + 1], whose index 0 reaches n, but A has 0 to n - 1 there",
    "B: float32[n - 1]",
)
bounds(
    "row_before_the_first",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {
      B[i] = A[i] - A[i - 1]  # <-
    }
    """,
    "B reads A[i - 1], whose index 0 reaches -1, but A has 0 to n - 1 there",
    "B[i] = if_then_else(i > 0, A[i] - A[i - 1], A[i])",
)
bounds(
    "window_past_the_end",
    """
    kernel k(X: float32[8]) -> (Y: float32[8]) {
      Y[i] = sum[k < 3](X[i + k])  # <-
    }
    """,
    "Y reads X[i + k], whose index 0 reaches 9, but X has 0 to 7 there",
    "Y: float32[6]",
)
bounds(
    "next_row_in_a_scan",
    """
    kernel k(X: float32[m, n]) -> (S: float32[m, n]) {
      scan t {
        S[0, i] = X[0, i]
        S[t, i] = S[t - 1, i] + X[t + 1, i]  # <-
      }
    }
    """,
    "S.update reads X[t + 1, i], whose index 0 reaches m, but X has 0 to m - 1 there",
    "X[t, i], or X: float32[m + 1, n]",
)
bounds(
    "next_column_of_a_state",
    """
    kernel k(X: float32[m, n]) -> (S: float32[m, n]) {
      scan t {
        S[0, i] = X[0, i]
        S[t, i] = S[t - 1, i + 1] + X[t, i]  # <-
      }
    }
    """,
    "S.update reads S.state[t - 1, i + 1], whose index 1 reaches n, but S.state has 0 to n - 1 there",
    "S[t - 1, (i + 1) % n]",
)
bounds(
    "sum_over_the_rows_of_each_row",
    """
    kernel k(A: float32[n, m]) -> (B: float32[n]) {
      B[i] = sum[k < n](A[i, k])  # <-
    }
    """,
    "B of k reads index 3 of dimension 1 of A, but its extent there is 3",
    "sum[k < m](A[i, k])",
    call=("np.ones((4, 3), np.float32)",),
)
bounds(
    "shape_that_was_not_transposed",
    """
    kernel k(A: float32[n, m]) -> (B: float32[m, n]) {
      B[i, j] = A[i, j]  # <-
    }
    """,
    "B of k reads index 3 of dimension 1 of A, but its extent there is 3",
    "B[i, j] = A[j, i]",
    call=("np.ones((4, 3), np.float32)",),
)
bounds(
    "every_second_row_of_as_many",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {
      B[i] = A[i * 2]  # <-
    }
    """,
    "B of k reads index 4 of dimension 0 of A, but its extent there is 4",
    "A: float32[n * 2]",
    call=("np.ones(4, np.float32)",),
)
bounds(
    "offsets_past_the_values",
    """
    kernel k(A: float32[n], p: int64[m + 1]) -> (B: float32[m]) {
      B[i] = sum[p[i] <= k < p[i + 1]](A[k])  # <-
    }
    """,
    "B of k reads index 4 of dimension 0 of A, but its extent there is 4",
    "offsets up to the number of values",
    call=("np.ones(4, np.float32)", "np.array([0, 2, 6])"),
)
bounds(
    "bin_that_is_not_there",
    """
    kernel k(A: float32[m], I: int64[m], Z: float32[n]) -> (H: float32[n]) {
      H = scatter_add[r < m](Z, I[r], A[r])  # <-
    }
    """,
    "H of k updates its element at index 9 of dimension 0, but its extent there is 4",
    "indices from 0 to 3",
    call=("np.ones(2, np.float32)", "np.array([0, 9])", "np.zeros(4, np.float32)"),
)
