"""Kubernetes and compose: kustomize, the schemas of Kubernetes, and what files of one service must agree in."""

import json
import re

import pytest
from deployed import DEPLOY, ROOT, TOOLS, needs, run, version


@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_kubernetes(overlay, tmp_path):
    written = tmp_path / "all.yaml"
    written.write_text(run(needs("kubectl"), "kustomize", DEPLOY / "kubernetes" / "overlays" / overlay))
    run(TOOLS / "kubernetes-validate", "--strict", written)
    text = written.read_text()
    assert f":{version()}" in text
    assert ("nvidia.com/gpu" in text) == (overlay == "gpu")
    for kind in ("Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service"):
        assert f"\nkind: {kind}\n" in text


def test_the_dashboard_asks_for_metrics_that_there_are():
    known = set(re.findall(r"kiln_[a-z_]+", (ROOT / "docs" / "metrics.md").read_text()))
    dashboard = json.loads((DEPLOY / "compose" / "grafana" / "dashboards" / "kiln.json").read_text())
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"kiln_[a-z_]+", target["expr"])}
    assert len(asked) > 12
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= {
        re.sub(r"_(bucket|sum|count)$", "", name) for name in known}


def test_compose_and_the_image_agree():
    compose = (DEPLOY / "compose" / "compose.yaml").read_text()
    image = (DEPLOY / "image" / "kilnd.toml").read_text()
    port = re.search(r'^metrics-listen = "0\.0\.0\.0:(\d+)"', image, re.M)[1]
    assert f"kiln:{port}" in (DEPLOY / "compose" / "prometheus.yml").read_text()
    for folder in ("/var/lib/kiln", "/var/cache/kiln"):
        assert folder in image and folder in compose
