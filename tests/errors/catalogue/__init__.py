"""The catalogue: one table of wrong programs, which the tests run and docs/errors.md is made from."""

from . import (
    arguments, classic, command_line, cpp_programs, declarations, expressions, foreign_topi, gradients, graphs, inner_outputs, layouts,
    operators, own_reducers, paddings, places, reads,
    reducers, reduction_stages, scan_parts, scans, service, steps_hints, steps_loops, steps_stages, streams, targets, text_bounds, text_form,
    text_scans,
    text_schedules,
)  # fmt: skip

SECTIONS = [
    module.wrong
    for module in (
        expressions, reads, declarations, reducers, own_reducers, scans, gradients, operators, places, foreign_topi, steps_loops, steps_stages,
        inner_outputs, layouts, paddings, reduction_stages, steps_hints, scan_parts, classic, targets, arguments, graphs, cpp_programs, text_form, text_scans,
        text_bounds, text_schedules, command_line, service, streams,
    )
]  # fmt: skip
