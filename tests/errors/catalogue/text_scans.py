"""Mistakes in scans of kernel files."""

from .entry import Section

wrong = Section(
    "text_scans", "Scans in kernel files",
    "A `scan` block gives the initial steps by their numbers, then each later step by its axis.",
)  # fmt: skip


def two_vectors(name, reason, body, says, fix, **columns):
    """A mistake in the body of a kernel with two inputs and an output."""
    text = "kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n" + body + "\n}\n"
    wrong.text(name, reason, text, says, fix, **columns)


two_vectors(
    "recurrence_without_a_scan",
    "SYNTAX",
    "  C[i] = C[i - 1] + A[i]  # <-",
    "C reads itself; what follows from its earlier elements is a scan, as in scan i {{ C[0] = ...  C[i] = ... }}",
    "scan i { C[0] = A[0]  C[i] = C[i - 1] + A[i] }",
)
two_vectors(
    "recurrence_from_the_end_without_a_scan",
    "SYNTAX",
    "  D: float32[4, n]\n  D[j, i] = A[i] + D[j, i + 1]  # <-\n  C[i] = D[0, i]",
    "D reads itself; what follows from its earlier elements is a scan, as in scan i reverse "
    "{{ D[j, n - 1] = ...  D[j, i] = ... }}",
    "scan i reverse { D[j, n - 1] = A[n - 1]  D[j, i] = A[i] + D[j, i + 1] }",
)
two_vectors(
    "tensor_changed_in_place",
    "SYNTAX",
    "  C[i] = C[i] + A[i]  # <-",
    "C reads itself, at the element it computes; give the value before another name",
    "D: float32[n]  D[i] = B[i]  C[i] = D[i] + A[i]",
)
two_vectors(
    "state_without_dimensions",
    "SYNTAX",
    "  s: float32[]\n  scan t { s[] = 0  s[] = s[] + 1 }  # <-\n  C[i] = s[]",
    "the scan has no initial step, as in S[0, i] = ...",
    "a dimension for time",
)
two_vectors(
    "scan_in_a_scan_of_a_file",
    "SYNTAX",
    "  scan t {\n    C[0] = 0\n    scan u { C[u] = 0 }  # <-\n  }",
    "a scan cannot stand inside a scan",
    "two scans side by side, or a reduction",
)
two_vectors(
    "tuple_as_initial_steps",
    "SYNTAX",
    "  D: float32[n]\n  scan t {\n    C[0], D[0] = 0, 0  # <-\n    C[t] = D[t - 1]\n    D[t] = C[t - 1]\n  }",
    "initial steps are given for one tensor at a time",
    "C[0] = 0 and D[0] = 0",
)
two_vectors(
    "tuple_as_a_state",
    "SYNTAX",
    "  D: float32[n]\n  scan t {\n    C[0] = 0\n    D[0] = 0\n    C[t], D[t] = D[t - 1], C[t - 1]  # <-\n  }",
    "the state of a scan is computed by itself, not in a tuple",
    "C[t] = D[t - 1] and D[t] = C[t - 1]",
)
two_vectors(
    "initial_steps_given_twice",
    "SYNTAX",
    "  scan t {\n    C[t < 1] = 0\n    C[t < 1] = 1  # <-\n    C[t] = C[t - 1]\n  }",
    "the initial steps of C are given twice",
    "one of them",
)
two_vectors(
    "scan_of_unknown_tensors",
    "SYNTAX",
    "  C = scan(first, next, s, axis=t)  # <-",
    "unknown tensor first in the scan",
    "tensors declared and computed before",
)
two_vectors(
    "scan_of_lists_of_different_lengths",
    "SYNTAX",
    "  f: float32[1]\n  s: state float32[n]\n  u: float32[n]\n  f[i] = 0\n  u[t] = s[t - 1]\n"
            "  C = scan((f, f), u, s, axis=t)  # <-",
    "the scan has 1 results, 2 init, 1 update and 1 state; their numbers must be the same",
    "scan(f, u, s, axis=t)",
)
two_vectors(
    "dimension_that_is_no_number",
    "SYNTAX",
    "  f: float32[1]\n  s: state float32[n]\n  u: float32[n]\n  f[i] = 0\n  u[t] = s[t - 1]\n"
            "  C = scan(f, u, s, axis=t, dimension=x)  # <-",
    "expected which dimension is time, as in dimension=1, but found x",
    "dimension=0",
)
two_vectors(
    "unknown_option_of_a_scan",
    "SYNTAX",
    "  f: float32[1]\n  s: state float32[n]\n  u: float32[n]\n  f[i] = 0\n  u[t] = s[t - 1]\n"
            "  C = scan(f, u, s, time=t)  # <-",
    "expected axis=, dimension= or reverse, but found time",
    "axis=t",
)
two_vectors(
    "size_inside_of_a_scan",
    "SYNTAX",
    "  scan t {\n    C[0] = 0\n    size q  # <-\n    C[t] = C[t - 1] + A[t]\n  }",
    "expected an assignment such as S[t, i] = ...",
    "size q before the scan",
)
wrong.text(
    "states_without_a_dimension_for_time",
    "SYNTAX",
    """
    kernel k(A: float32[]) -> (C: float32[]) {
      first: float32[]
      s: state float32[]
      next: float32[]
      first[] = A[]
      next[] = s[] + 1
      C = scan(first, next, s)  # <-
    }
    """,
    "C has no dimensions, but a scan needs one for time",
    "float32[m], first[t] and next[t]",
)
