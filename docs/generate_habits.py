"""Writes docs/habits.md from the table of tests/e2e/habits.py, each row of which is a test.

    build/venv/bin/python docs/generate_habits.py > docs/habits.md
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))

HEADER = """\
# Habits

What users of numpy, torch, jax and te write out of habit, one line each, and what happens. `v` is a numpy array, `x` and
`y` are arrays of the daemon, of `v` and of its transpose; `A` and `B` = 2 * A are tensors of te, and `f` is what
`kiln.build([A, B], name="double")` made of them. Operators and functions of numpy on arrays of the daemon fetch the
contents, and give what numpy gives; a function of Kiln takes both.

This page is printed by `docs/generate_habits.py` from `tests/e2e/habits.py`, where each line is a test.
"""


def page():
    from habits import GROUPS, Says

    lines = [HEADER]
    for title, rows in GROUPS:
        lines.append(f"\n## {title}\n\n| you write | what happens |\n|---|---|\n")
        for code, result in rows:
            shown = f"*{_text(result)}*" if isinstance(result, Says) else f"`{result}`"
            lines.append(f"| `{code}` | {shown} |\n".replace("||", "\\|\\|"))
    return "".join(lines)


def _text(sentence):
    for mark in "*_`[]<>|":
        sentence = sentence.replace(mark, "\\" + mark)
    return sentence


if __name__ == "__main__":
    sys.stdout.write(page())
