"""Puts the tables that `kiln-tables` prints into a page, below its line `<!-- tables -->`.

    kiln-tables | python3 docs/generate_tables.py docs/language.md
    kiln-tables | python3 docs/generate_tables.py --check docs/language.md

With --check it changes nothing and exits 1 when the page is out of date.
"""

import json
import pathlib
import sys

MARK = "<!-- tables -->\n"

RULES = {
    "same": "numbers of one type; the result too",
    "same_int": "integers of one type; the result too",
    "same_float": "floating numbers of one type; the result too",
    "same_bits": "integers of one type, or bools; the result too",
    "compare": "operands of one type; the result is a bool",
    "logic": "bools",
    "choose": "a bool, then two values of one type; the result has that type",
    "float_test": "a floating number; the result is a bool",
    "int_to_int": "an integer; the result too",
    "bits": "a floating number; the result is the unsigned integer as wide",
    "from_bits": "an unsigned integer as wide as the result, a floating number of the type in the name",
}


def cell(value):
    return str(value).replace("|", "\\|")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text):
    return f"`{text}`" if text != "" else ""


def count(number):
    return "any" if number < 0 else number


def parameters(step):
    words = {"none": "", "parts": "or parts", "at": "stage and axis", "tags": "thread axes"}
    used = [words.get(word, word) for word in step["uses"].split() if word != "output"]
    used += [step["value"]] if step["value"] else []
    return ", ".join(word for word in used if word)


def defines(step):
    stage = f"stage {code(step['stage'])} " if step["stage"] else ""
    return stage + code(step["defines"])


def render(tables):
    rules = table(["rule", "operands"], [[code(name), text] for name, text in RULES.items()])
    operators = table(
        ["operator", "written", "operands", "rule", "accuracy", "meaning"],
        [[code(row["name"]), code(row["infix"]), row["arity"], code(row["type_rule"]), row["accuracy"],
          row["doc"]] for row in tables["operators"]])
    combiners = table(
        ["reducer", "operator", "of nothing", "meaning"],
        [[code(row["name"]), code(row["operator"]), row["identity"], row["doc"]]
         for row in tables["combiners"]])
    steps = table(
        ["step", "axes", "factors", "also", "defines", "meaning"],
        [[code(row["name"]), count(row["axes"]), count(row["factors"]), parameters(row),
          defines(row), row["doc"]] for row in tables["steps"]])
    pragmas = table(
        ["pragma", "values", "meaning"],
        [[code(row["name"]), f"0 to {row['most']}" if row["most"] >= 0 else "",
          {"acts": "", "idle": "nothing to do: ", "refused": "refused: "}[row["use"]] + row["doc"]]
         for row in tables["pragmas"]])
    intrinsics = table(
        ["intrinsic", "CPU feature", "loops"],
        [[code(row["name"]), code(row["feature"]), row["doc"]] for row in tables["intrinsics"]])
    dtypes = table(
        ["type", "kind", "bits"],
        [[code(row["name"]), row["kind"], row["bits"]] for row in tables["dtypes"]])
    tags = ", ".join(code(tag) for tag in tables["thread_tags"])
    scopes = ", ".join(code(scope) for scope in tables["memory_scopes"])
    return (f"\n## Operators\n\n{operators}\n{rules}\n## Reducers\n\n{combiners}\n## Steps\n\n"
            f"`{{0}}`, `{{1}}` and `{{all}}` are the names of the step's axes. A step that makes a stage gives it "
            f"data axes, then reduction axes: `{{n}}` stands for each dimension of the tensor, `{{data}}` and "
            f"`{{reduce}}` for each data and each reduction axis of the step's stage; where a "
            f"step takes any number of axes, for each that it names. A name that is taken gets `_1`, `_2`.\n\n{steps}\n"
            f"Thread axes: {tags}. Memory scopes: {scopes}; on a CPU they only say so in the loops printed. On a GPU a "
            f"stage in shared memory that stands inside bound loops holds what all threads of the block read, and its "
            f"own loops over those threads are divided among them. A stage in the memory of a warp lies in the "
            f"registers of at most 32 threads along `threadIdx.x`: one of its axes is bound to them, each holds what it "
            f"stores, and what others hold comes by shuffles.\n\n"
            "A reduction axis that is bound to `threadIdx` is divided among the threads: each reduces its part, then they "
            "combine two parts at a time in shared memory, so its extent is a constant. Where iterations of a loop need "
            "what other blocks did in the one before, as in a scan whose states read each other, the host runs the loop, "
            "and each iteration is launches of its own.\n\n"
            f"What `pragma` takes:\n\n{pragmas}\n"
            f"What `tensorize` takes; where the CPU lacks the feature, other instructions compute the same:\n\n"
            f"{intrinsics}\n## Types\n\n{dtypes}")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    page = pathlib.Path(arguments[0])
    text = page.read_text()
    head, mark, _ = text.partition(MARK)
    if not mark:
        sys.exit(f"{page} has no line {MARK.strip()}")
    fresh = head + mark + render(json.load(sys.stdin))
    if "--check" not in sys.argv:
        page.write_text(fresh)
    elif fresh != text:
        sys.exit(f"{page} is out of date: kiln-tables | python3 docs/generate_tables.py {page}")


main()
