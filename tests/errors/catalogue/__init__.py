"""The catalogue: one table of wrong programs, which the tests run and docs/errors.md is made from."""

from . import arguments, declarations, expressions, reducers, scans, steps_loops, steps_stages, targets

SECTIONS = [
    module.wrong
    for module in (expressions, declarations, reducers, scans, steps_loops, steps_stages, targets, arguments)
]
