"""Writes kiln/intrinsics.h: a function for every operator and combiner of the language's tables, of operators
on whole tensors too."""

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
            f'  return detail::apply("{spelling}", {{{", ".join(names)}}});\n}}\n' +
            tensor_functions(spelling, names))


def tensor_functions(spelling, names):
    """On whole tensors. Of two operands either may be a number, of three not the first."""
    first, *rest = names
    values = ", ".join([first, *(f"{name}.value" for name in rest)])
    if not rest:
        return (f"inline Tensor {spelling}(const Tensor& a, SourceLocation where = SourceLocation::current()) {{\n"
                f'  return detail::elementwise("{spelling}", {{a}}, where);\n}}\n')
    operands = "".join(f", const detail::Operand& {name}" for name in rest)
    functions = (f"inline Tensor {spelling}(const Tensor& {first}{operands}) {{\n"
                 f'  return detail::elementwise("{spelling}", {{{values}}}, b.where);\n}}\n')
    if len(rest) == 1:
        functions += (f"inline Tensor {spelling}(const detail::NumberOperand& a, const Tensor& b) {{\n"
                      f'  return detail::elementwise("{spelling}", {{a.value, b}}, a.where);\n}}\n')
    return functions


def combiner_functions(spelling, doc):
    return (f"/// {doc}, over all values of the axis.\n"
            f"inline Expr {spelling}(const Expr& source, const ReduceAxis& axis, const Reduced& options = {{}}) {{\n"
            f'  return detail::reduce("{spelling}", source, {{axis}}, options);\n}}\n'
            f"/// {doc}, over all values of the axes, outermost first.\n"
            f"inline Expr {spelling}(const Expr& source, const std::vector<ReduceAxis>& axes,\n"
            f"{' ' * (13 + len(spelling))}const Reduced& options = {{}}) {{\n"
            f'  return detail::reduce("{spelling}", source, axes, options);\n}}\n')


def main():
    language, output = map(pathlib.Path, sys.argv[1:])
    functions = [operator_function(*row)
                 for row in rows(language / "operators.def", OPERATOR, "OPERATOR")]
    functions += [combiner_functions(*row)
                  for row in rows(language / "combiners.def", COMBINER, "COMBINER")]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        "// Made from the operator and combiner tables by make_intrinsics.py.\n"
        "#pragma once\n\n#include <vector>\n\n#include <kiln/elementwise.h>\n#include <kiln/expr.h>\n#include <kiln/reducer.h>\n\n"
        "namespace kiln {\ninline namespace client {\n\n" + "\n".join(functions) +
        "\n}  // namespace client\n}  // namespace kiln\n")


if __name__ == "__main__":
    main()
