"""Writes kiln/intrinsics.h: a function for every operator and combiner of the language's tables."""

import pathlib
import re
import sys

OPERATOR = re.compile(r'^OPERATOR\(\w+, "(\w+)", (\d), \w+, "[^"]*", "([^"]*)", "([^"]*)"\)$', re.M)
COMBINER = re.compile(r'^COMBINER\(\w+, "(\w+)", \w+, "[^"]*", "([^"]*)"\)$', re.M)
NAMES = "abc"


def rows(path, pattern, macro):
    text = path.read_text()
    found = pattern.findall(text)
    if len(found) != len(re.findall(rf"^{macro}\(", text, re.M)):
        sys.exit(f"{path}: a row is not as this script reads them")
    return found


def operator_function(spelling, arity, accuracy, doc):
    names = NAMES[:int(arity)]
    parameters = ", ".join(f"const Expr& {name}" for name in names)
    how = "" if accuracy == "exact" else f"; within {accuracy}"
    return (f"/// {doc}{how}.\n"
            f"inline Expr {spelling}({parameters}) {{\n"
            f'  return detail::apply("{spelling}", {{{", ".join(names)}}});\n}}\n')


def combiner_functions(spelling, doc):
    return (f"/// {doc}, over all values of the axis.\n"
            f"inline Expr {spelling}(const Expr& source, const ReduceAxis& axis) {{\n"
            f'  return detail::reduce("{spelling}", source, {{axis}});\n}}\n'
            f"/// {doc}, over all values of the axes, outermost first.\n"
            f"inline Expr {spelling}(const Expr& source, const std::vector<ReduceAxis>& axes) {{\n"
            f'  return detail::reduce("{spelling}", source, axes);\n}}\n')


def main():
    language, output = map(pathlib.Path, sys.argv[1:])
    functions = [operator_function(*row)
                 for row in rows(language / "operators.def", OPERATOR, "OPERATOR")]
    functions += [combiner_functions(*row)
                  for row in rows(language / "combiners.def", COMBINER, "COMBINER")]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        "// Made from the operator and combiner tables by make_intrinsics.py.\n"
        "#pragma once\n\n#include <vector>\n\n#include <kiln/expr.h>\n\n"
        "namespace kiln {\ninline namespace client {\n\n" + "\n".join(functions) +
        "\n}  // namespace client\n}  // namespace kiln\n")


if __name__ == "__main__":
    main()
