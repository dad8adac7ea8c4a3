"""What is deployed is checked by the tools of its kind: hadolint, shellcheck, systemd."""

import re

import yaml
from deployed import DEPLOY, ROOT, TOOLS, needs, run


def test_hadolint():
    for name in sorted(DEPLOY.glob("Dockerfile*")):
        run(TOOLS / "hadolint", name)


def stages():
    return set(re.findall(r"^FROM \S+ AS (\w+)$", (DEPLOY / "Dockerfile").read_text(), re.M))


def test_compose_runs_what_the_dockerfile_builds():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        assert service["build"]["target"] in stages()
        assert service["profiles"] == [name]
        assert {volume.split(":")[0] for volume in service["volumes"]} <= compose["volumes"].keys()
    (gpus,) = compose["services"]["cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert gpus == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in compose["services"]["cpu"]


def test_the_image_has_the_nvrtc_that_kiln_names():
    (pin,) = re.findall(r"^nvidia-cuda-nvrtc==\S+", (DEPLOY / "image" / "nvrtc.txt").read_text(), re.M)
    assert pin in (ROOT / "compiler" / "codegen" / "nvrtc_library.cc").read_text()
    assert pin in (ROOT / "docs" / "gpu.md").read_text()


def test_shellcheck():
    run(needs("shellcheck"), *sorted(DEPLOY.glob("*.sh")), *sorted((DEPLOY / "debian").glob("p*")),
        DEPLOY / "slurm" / "kiln.sbatch")
    # What they source is there in a root alone, and what root.sh uses is whose sources it.
    run("shellcheck", "--exclude=SC1091,SC2154", *sorted((ROOT / "tests" / "deploy" / "clean_root").glob("*.sh")))


def test_the_unit_of_systemd(tmp_path):
    needs("systemd-analyze")
    text = (DEPLOY / "systemd" / "kilnd.service").read_text()
    unit = tmp_path / "kilnd.service"
    unit.write_text(text.replace("/usr/bin/kilnd", "/bin/true"))  # which must exist
    run("systemd-analyze", "verify", "--man=no", unit)
