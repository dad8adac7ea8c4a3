"""Runs all parts one after another, each as long as it may take, and writes what they found as one JSON."""

import argparse
import datetime
import json
import pathlib
import shutil
import sys
import time

import bench
import choices
import correct
import host

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "results"
NOT_MEASURED = "times not measured"
# H100, A100, L4 and B200.
PREDICTED_FOR = ("sm_90", "sm_80", "sm_89", "sm_100")


def counted(rows):
    states = [row["state"] for row in rows.values()]
    return {state: states.count(state) for state in sorted(set(states))}


def checked_memory(options):
    """A few kernels under compute-sanitizer, where it is there: what each of its tools finds."""
    program = shutil.which("compute-sanitizer")
    if program is None or options.fake:
        return {"state": "not on the fake driver" if options.fake else "compute-sanitizer is not here"}
    found = {}
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        log = pathlib.Path(f"compute-sanitizer-{tool}.log")
        under = host.Host(options.build, options.fake,
                          [program, "--tool", tool, "--target-processes", "all", "--log-file", str(log)],
                          cache=options.cache)
        try:
            rows = {**correct.whole_programs(under.connection), **correct.resident(under.connection, 1)}
        finally:
            under.close()
        text = log.read_text(errors="replace") if log.exists() else ""
        found[tool] = {"counts": counted(rows), "summary": text.strip().splitlines()[-1:] }
        log.unlink(missing_ok=True)
    return found


def compile_all(options):
    """Compiles what a run on a GPU of this architecture will, into the cache that it will begin with."""
    here = host.Host(options.build, False)
    elsewhere = host.Compiling(here.connection, options.compile_for)
    rows = {**correct.whole_programs(elsewhere), **correct.resident(elsewhere), **correct.trouble(elsewhere),
            **correct.operators(elsewhere, time.monotonic() + 3600, options.cases)}
    bench.compile_all(elsewhere)
    if options.choices:
        choices.compile_all(elsewhere, options.compile_for)
    here.close(keep=options.cache)
    (pathlib.Path(options.cache) / host.PLANNED_FOR).write_text(options.compile_for)
    print(json.dumps(counted(rows)))
    failed = [f"{name}: {row['sentence']}" for name, row in rows.items() if row["state"] in ("failed", "wrong")]
    print("\n".join(failed))
    return 1 if failed else 0


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def without_a_device(options):
    """What can be said where no kernel can run: what each is predicted to take on the GPUs of the table."""
    here = host.Host(options.build, False, settings={"KILN_LIBCUDA": "not here"})
    report = {"date": now(), "commit": host.facts(here.connection, False)["commit"], "times": NOT_MEASURED,
              "predicted": bench.predictions(here.connection, PREDICTED_FOR, options.cases)}
    here.close()
    return report


def all_parts(options):
    begin = time.monotonic()
    end = begin + options.seconds
    here = host.Host(options.build, options.fake, cache=options.cache)
    if why := host.without_gpu(here.connection):
        here.close()
        sys.exit(f"nothing was run: {why}. tests/gpu/pack.sh packs all that is needed for a host that has a GPU; "
                 "--fake --out FILE rehearses here, --predict writes what its times are predicted to be")
    report = {"date": now()}
    parts = {"facts": lambda: host.facts(here.connection, options.fake)}
    if options.choices:
        parts["choices"] = lambda: choices.choices(here.connection, options.fake, options.cases)
    else:
        parts |= {
            "programs": lambda: correct.whole_programs(here.connection),
            "resident": lambda: correct.resident(here.connection),
            "trouble": lambda: correct.trouble(here.connection),
            "times": lambda: bench.times(here.connection, options.fake),
            # What is left but for two minutes, which the memory checks may take.
            "operators": lambda: correct.operators(here.connection, end - 120, options.cases),
        }
    try:
        for name, part in parts.items():
            started = time.monotonic()
            report[name] = part()
            print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    finally:
        here.close()
    if not options.choices:
        report["memory"] = checked_memory(options)
    report["counts"] = {name: counted(report[name]) for name in ("programs", "resident", "trouble", "operators") if name in report}
    report["seconds"] = round(time.monotonic() - begin, 1)
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--cases", default="")
    parser.add_argument("--cache")
    parser.add_argument("--compile-for", metavar="ARCH")
    options = parser.parse_args()
    if options.compile_for:
        return compile_all(options)
    if options.fake and not options.out:
        parser.error("a rehearsal is no result: name its file by --out")
    report = without_a_device(options) if options.predict else all_parts(options)
    what = "gpu-choices" if options.choices else "gpu"
    name = "gpu-predicted.json" if options.predict else f"{what}-{report['date'][:10]}-{report['facts']['commit']}.json"
    out = pathlib.Path(options.out) if options.out else RESULTS / name
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    if options.predict:
        print(f"{NOT_MEASURED}; what they are predicted to be is in {out}")
        return 0
    print(json.dumps(report["choices"]["regret"] if options.choices else report["counts"]), f"in {out}")
    bad = [f"{part}: {name}: {row['state']}: {row.get('sentence', '')}" for part in report["counts"]
           for name, row in report[part].items() if row["state"] in ("wrong", "failed")]
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
