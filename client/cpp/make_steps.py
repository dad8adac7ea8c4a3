"""Writes kiln/steps.h: a method for every step whose row of the step table says all, as the Python client has it.

    unroll, 1 axis                            ->  void unroll(const Axis& axis) const
    software_pipeline, 1 axis, value stages   ->  void software_pipeline(const Axis& axis, std::int64_t stages) const
"""

import pathlib
import re
import sys
import textwrap

from make_intrinsics import rows

STEP = re.compile(
    r'^STEP\(\w+, "(\w+)", (\w+), (\w+), ([\w| ]+), "(\w*)", "([^"]*)", "([^"]*)", [\w| ]+, "[^"]*", "([^"]*)"\)$', re.M
)


def method(name, axes, value, doc):
    parameters = {"0": [], "1": ["const Axis& axis"], "kAnyNumber": ["const std::vector<Axis>& axes"]}[axes]
    given = {"0": "{}", "1": "{axis}", "kAnyNumber": "axes"}[axes]
    if value:
        parameters.append(f"std::int64_t {value}")
    parameters.append("Where where = Where::current()")
    comment = textwrap.fill(f"{doc[0].upper()}{doc[1:]}.", 94, initial_indent="  /// ", subsequent_indent="  /// ")
    return (
        f"{comment}\n"
        f"  void {name}({', '.join(parameters)}) const {{\n"
        f'    take("{name}", {given}, {value or 0}, where);\n  }}\n'
    )


def main():
    table, output = map(pathlib.Path, sys.argv[1:])
    methods = [
        method(name, axes, value, doc)
        for name, axes, factors, uses, value, stage, defines, doc in rows(table, STEP, "STEP")
        if axes in ("0", "1", "kAnyNumber") and (factors, uses, stage, defines) == ("0", "None", "", "")
    ]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        "// Made from the step table by make_steps.py.\n"
        "#pragma once\n\n#include <cstdint>\n#include <memory>\n#include <utility>\n#include <vector>\n\n"
        "#include <kiln/source_location.h>\n#include <kiln/tensor.h>\n\n"
        "namespace kiln {\ninline namespace client {\nnamespace detail {\n\nstruct ScheduleState;\n\n"
        "/// The steps of a stage that take axes and a number at most.\nclass PlainSteps {\n public:\n"
        "  using Where = SourceLocation;\n\n" + "\n".join(methods) + "\n protected:\n"
        "  PlainSteps(std::shared_ptr<ScheduleState> schedule, std::shared_ptr<const StageNode> stage)\n"
        "      : schedule_(std::move(schedule)), stage_(std::move(stage)) {}\n\n"
        "  std::shared_ptr<ScheduleState> schedule_;\n  std::shared_ptr<const StageNode> stage_;\n\n private:\n"
        "  void take(const char* step, const std::vector<Axis>& axes, std::int64_t value, const Where& where) const;\n"
        "};\n\n}  // namespace detail\n}  // namespace client\n}  // namespace kiln\n"
    )


if __name__ == "__main__":
    main()
