"""Writes docs/cuda_operators.md: every operator of kiln.topi and 200 random definitions, unscheduled, on GPUs.

    FOLDER=$(mktemp -d)
    KILN_LIBCUDA=.../libfake_libcuda.so KILN_NVRTC=.../libfake_libnvrtc.so KILN_KEEP_DEFINITIONS=$FOLDER \\
        build/dev/bin/kiln_cuda_code_tests --gtest_filter=DefinitionsOnHost.DrawnAtRandomAreEqual
    KILN_DAEMON=build/dev/bin/kilnd build/venv/bin/python docs/generate_cuda_operators.py $FOLDER [compile] [run] [page]

NVRTC compiles each for every architecture; code for the imitation of a GPU (tests/cuda/host) gives the results,
thread by thread, for which the build has to lie where it was made. On two shared cores that takes half an hour. What is
found is kept in FOLDER/rows.json, from where the next run goes on; a page is printed when no row is missing.
"""

import concurrent.futures
import datetime
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "gpu")]

import host  # noqa: E402
import numpy as np  # noqa: E402
from test_topi import CASES  # noqa: E402

import kiln  # noqa: E402
from kiln import te  # noqa: E402

ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
PAGE = ROOT / "docs" / "cuda_operators.md"

HEADER = """\
# Operators on GPUs

The {cases} cases of `tests/e2e/test_topi.py`, each an operator of `kiln.topi` at the sizes of its test, and {drawn} random definitions,
none with a step: what the compiler makes of them for NVIDIA GPUs. Nothing of this page ran on a GPU: registers and spilled bytes are read from the machine code that {nvrtc}
makes for {archs}; "equal" says that the same CUDA C, run on the host thread by thread (`tests/cuda/host`), gives what numpy
or the definition gives, without a race, an access beside memory or a read of what nobody wrote. All cases
for sm_90 alone are in `tests/golden/cuda_topi.txt`, which a test keeps. It is as of {date}, and printed by `docs/generate_cuda_operators.py`.

{summary}
Registers are those of the largest kernel of a row, the fewest and the most of all architectures. Spilled bytes are those of a thread;
sines and Fourier transforms have the table by which CUDA reduces angles there.

| operator | launches | registers | spilled bytes | result |
|---|---|---|---|---|
"""

RANDOM = """
## Random definitions

Drawn by `tests/support/random_kernel.h` from the seeds {first} to {last}: reductions, scans, scatters, reads at computed places, paddings
and chains of these. {summary}

| seed | launches | registers | spilled bytes | result |
|---|---|---|---|---|
"""


class Rows:
    """What is known, kept in a file after each new row."""

    def __init__(self, path):
        self.path = path
        self.known = json.loads(path.read_text()) if path.exists() else {}

    def get(self, key, make):
        if key not in self.known:
            self.known[key] = make()
            self.path.write_text(json.dumps(self.known))
        return self.known[key]


def measured(compile_for):
    """Launches, registers and spilled bytes of what is compiled; or why it is refused."""
    try:
        with concurrent.futures.ThreadPoolExecutor(len(ARCHS)) as pool:
            reports = list(pool.map(lambda arch: compile_for(arch).report(), ARCHS))
    except kiln.Unavailable:
        raise
    except kiln.Error as error:
        return {"refused": error.message}
    return {"archs": [[report["launches"], max((row["registers"] for row in report["kernels"]), default=0),
                       max((row["spill_bytes"] for row in report["kernels"]), default=0)] for report in reports]}  # fmt: skip


def topi_row(connection, case):
    def compile_for(arch):
        inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
        return kiln.compile([*inputs, case.build(*inputs)], target="cuda", arch=arch, connection=connection)

    return measured(compile_for)


def topi_result(connection, case):
    """"equal", or what is not."""
    inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
    try:
        kernel = kiln.build([*inputs, case.build(*inputs)], target="cuda", connection=connection)
        result = kernel(*case.inputs).numpy()
    except kiln.Error as error:
        return error.message
    expected = np.asarray(case.expected(*case.inputs))
    if expected.dtype.kind in "biu":
        return "equal" if np.array_equal(result, expected) else "differs"
    return "equal" if np.allclose(result, expected, rtol=case.rtol, atol=case.atol, equal_nan=True) else "differs"


def random_row(connection, path):
    return measured(lambda arch: kiln.compile(next(iter(kiln.load_kernels(path, connection).values())), target="cuda",
                                              arch=arch, connection=connection))  # fmt: skip


def span(numbers):
    return f"{min(numbers)}" if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"


def line(name, row, result):
    if "refused" in row:
        return f"| {name} | | | | refused: {row['refused']} |\n"
    cells = " | ".join(span([arch[i] for arch in row["archs"]]) for i in range(3))
    return f"| {name} | {cells} | {result} |\n"


def summary(rows, results):
    compiled = [row for row in rows if "archs" in row]
    equal = sum(result == "equal" for row, result in zip(rows, results) if "archs" in row)
    one = sum(all(arch[0] == 1 for arch in row["archs"]) for row in compiled)
    return (f"Of {len(rows)}, {len(compiled)} are compiled for all {len(ARCHS)} architectures, {len(rows) - len(compiled)} refused; "
            f"{equal} are equal on the imitation; {one} are one launch each.\n")  # fmt: skip


def compile_all(rows, folder, build):
    real = host.Host(build, False)
    parts = real.connection.describe()["components"]
    rows.get("nvrtc", lambda: next(part["message"] for part in parts if part["name"] == "nvrtc").split(" in ")[0])
    for path in definitions_in(folder):
        rows.get(f"random {path.stem}", lambda: random_row(real.connection, path))  # noqa: B023
    for case in CASES:
        rows.get(f"topi {case.name}", lambda: topi_row(real.connection, case))  # noqa: B023
    real.close()


def run_all(rows, build):
    fake = host.Host(build, True)
    wanted = [case for case in CASES if f"result {case.name}" not in rows.known]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for case, result in zip(wanted, pool.map(lambda case: topi_result(fake.connection, case), wanted)):
            rows.get(f"result {case.name}", lambda: result)  # noqa: B023
    fake.close()


def definitions_in(folder):
    return sorted(folder.glob("*.kiln"), key=lambda path: int(path.stem))


def page(known, definitions):
    """Of all cases of today's table; half of it is no page."""
    missing = [key for case in CASES for key in (f"topi {case.name}", f"result {case.name}") if key not in known]
    if missing:
        raise SystemExit(f"{len(missing)} rows are missing, such as {missing[0]}: compile and run come before page")
    cases = CASES
    operators = [known[f"topi {case.name}"] for case in cases]
    results = [known[f"result {case.name}"] for case in cases]
    drawn = [known[f"random {path.stem}"] for path in definitions]
    outcomes = [path.with_suffix(".txt").read_text() for path in definitions]
    text = HEADER.format(nvrtc=known["nvrtc"], archs=", ".join(ARCHS), date=datetime.date.today().isoformat(), cases=len(cases),
                         drawn=len(drawn), summary=summary(operators, results))  # fmt: skip
    text += "".join(line(case.name.replace("|", "\\|"), row, result)
                    for case, row, result in zip(cases, operators, results))  # fmt: skip
    text += RANDOM.format(first=definitions[0].stem, last=definitions[-1].stem, summary=summary(drawn, outcomes).strip())
    return text + "".join(line(path.stem, row, result) for path, row, result in zip(definitions, drawn, outcomes))


def main():
    folder = pathlib.Path(sys.argv[1])
    build = pathlib.Path(os.environ["KILN_DAEMON"]).resolve().parent.parent
    rows = Rows(folder / "rows.json")
    for step in sys.argv[2:] or ["compile", "run", "page"]:
        if step == "compile":
            compile_all(rows, folder, build)
        elif step == "run":
            run_all(rows, build)
        else:
            PAGE.write_text(page(rows.known, definitions_in(folder)))


if __name__ == "__main__":
    main()
