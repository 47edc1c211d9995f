"""deploy/kubernetes, deploy/compose and the Dockerfile: every manifest is read and checked; with kubectl also as kustomize renders it."""
import glob
import os
import re
import shutil
import subprocess

import pytest
import yaml

from harness import BIN, REPO, wait_until

FOLDER = os.path.join(REPO, "deploy", "kubernetes")
RENDERED = sorted(os.path.dirname(p)[len(FOLDER) + 1:] for p in glob.glob(FOLDER + "/*/kustomization.yaml"))
needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")


def manifests():
    """(file, manifest) of every file but those of kustomize itself."""
    for path in sorted(glob.glob(FOLDER + "/*/*.yaml")):
        if os.path.basename(path) != "kustomization.yaml":
            with open(path) as f:
                for document in yaml.safe_load_all(f):
                    yield os.path.relpath(path, FOLDER), document


def one(kind, name=None):
    found = [d for _, d in manifests() if d["kind"] == kind and name in (None, d["metadata"]["name"])]
    assert len(found) == 1, (kind, name)
    return found[0]


def settings():
    r = subprocess.run([BIN, "serve", "--print-config"], capture_output=True, text=True, timeout=60)
    return {line.split()[0] for line in r.stdout.splitlines() if line and line[0].isupper()}


def workloads():
    return [(path, d) for path, d in manifests() if d["kind"] in ("Deployment", "StatefulSet")]


def test_every_folder_has_a_kustomization_that_names_its_files():
    assert RENDERED == ["base", "embedded", "monitoring", "processors"]
    for folder in RENDERED:
        with open(os.path.join(FOLDER, folder, "kustomization.yaml")) as f:
            for name in yaml.safe_load(f)["resources"]:
                assert os.path.exists(os.path.join(FOLDER, folder, name)), name


@pytest.mark.parametrize("path, d", workloads(), ids=lambda x: x if isinstance(x, str) else "")
def test_a_workload_selects_its_pods_and_has_no_rights(path, d):
    pod = d["spec"]["template"]
    assert d["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["automountServiceAccountToken"] is False and pod["spec"]["securityContext"]["runAsNonRoot"] is True
    for c in pod["spec"]["containers"]:
        assert c["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert c["resources"]["requests"] and c["resources"]["limits"]["memory"]
        assert not c["image"].endswith(":latest") and ":" in c["image"]
        volumes = {v["name"] for v in pod["spec"].get("volumes", []) + [t["metadata"] for t in d["spec"].get("volumeClaimTemplates", [])]}
        assert {m["name"] for m in c.get("volumeMounts", [])} <= volumes


def test_the_broker_stops_in_time_and_keeps_its_buffer(broker):
    d = one("StatefulSet")
    pod = d["spec"]["template"]["spec"]
    (c,) = pod["containers"]
    env = dict(line.split("=", 1) for line in open(os.path.join(FOLDER, "base", "queen.env")).read().splitlines() if "=" in line and line[0] != "#")
    assert set(env) <= settings(), set(env) - settings()
    pause = int(c["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] * 1000 > int(env["QUEEN_STOP_TIMEOUT_MS"]) + 1000 * pause
    assert d["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "buffers"
    (mount,) = [m["mountPath"] for m in c["volumeMounts"] if m["name"] == "buffers"]
    assert "FILE_BUFFER_DIR=%s/" % mount in dockerfile()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert broker.get(c[probe]["httpGet"]["path"]).status == 200
        assert c[probe]["httpGet"]["port"] in {p["name"] for p in c["ports"]}
    annotations = d["spec"]["template"]["metadata"]["annotations"]
    assert broker.get(annotations["prometheus.io/path"]).status == 200
    peers = env["QUEEN_UDP_PEERS"].split(",")
    assert peers == ["queen-%d.%s" % (i, d["spec"]["serviceName"]) for i in range(d["spec"]["replicas"])]


def test_services_budget_and_policy_fit_the_brokers():
    pod = one("StatefulSet")["spec"]["template"]
    labels, ports = pod["metadata"]["labels"], {p["name"]: p for p in pod["spec"]["containers"][0]["ports"]}
    for _, d in manifests():
        if d["kind"] == "Service":
            assert d["spec"]["selector"].items() <= labels.items()
            for p in d["spec"]["ports"]:
                assert ports[p["targetPort"]]["containerPort"] == p["port"] and ports[p["targetPort"]].get("protocol") == p.get("protocol")
    assert one("PodDisruptionBudget")["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    policy = one("NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items() and policy["policyTypes"] == ["Ingress", "Egress"]
    for rule in policy["ingress"] + policy["egress"]:
        for p in rule["ports"]:
            assert isinstance(p["port"], int) or p["port"] in ports
    monitor = one("ServiceMonitor")["spec"]
    services = [d for _, d in manifests() if d["kind"] == "Service" and monitor["selector"]["matchLabels"].items() <= d["metadata"].get("labels", {}).items()]
    assert len(services) == 1 and monitor["endpoints"][0]["port"] in {p["name"] for p in services[0]["spec"]["ports"]}


def test_processors_scale_from_10_to_20(broker):
    processor = one("Deployment", "processor")
    assert "replicas" not in processor["spec"]
    hpa = one("HorizontalPodAutoscaler")["spec"]
    assert hpa["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "processor"}
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (10, 20)
    assert {m["resource"]["name"]: m["resource"]["target"]["averageUtilization"] for m in hpa["metrics"]} == {"cpu": 70, "memory": 80}
    scaled = one("ScaledObject")["spec"]
    assert scaled["scaleTargetRef"] == {"name": "processor"}
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"], scaled["fallback"]["replicas"]) == (10, 20, 10)
    broker.put("k8s-scaling", [1])
    for trigger in scaled["triggers"]:
        series = re.search(r"queen_\w+", trigger["metadata"]["query"]).group(0)
        wait_until(lambda: "# TYPE %s gauge" % series in broker.get("/metrics/prometheus").body.decode(), 60, series, 0.3)
        assert float(trigger["metadata"]["threshold"]) > 0
        assert 'queue="' in trigger["metadata"]["query"] and 'group="' in trigger["metadata"]["query"]


def test_only_one_autoscaler_is_applied():
    with open(os.path.join(FOLDER, "processors", "kustomization.yaml")) as f:
        assert len({"cpu.yaml", "backlog.yaml"} & set(yaml.safe_load(f)["resources"])) == 1


@needs_kubectl
@pytest.mark.parametrize("folder", RENDERED)
def test_kustomize_renders_every_folder(folder):
    r = subprocess.run(["kubectl", "kustomize", os.path.join(FOLDER, folder)], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    rendered = [d for d in yaml.safe_load_all(r.stdout)]
    names = {(d["kind"], d["metadata"]["name"]) for d in rendered}
    assert all(d["kind"] == "Namespace" or d["metadata"]["namespace"] == "queen" for d in rendered)
    for d in rendered:
        for c in d.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            for source in c.get("envFrom", []):
                for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                    assert key not in source or (kind, source[key]["name"]) in names, source


@needs_kubectl
def test_the_small_variant_has_a_database_of_its_own():
    r = subprocess.run(["kubectl", "kustomize", os.path.join(FOLDER, "embedded")], capture_output=True, text=True, timeout=60, check=True)
    (d,) = [d for d in yaml.safe_load_all(r.stdout) if d["kind"] == "StatefulSet"]
    (c,) = d["spec"]["template"]["spec"]["containers"]
    assert d["spec"]["replicas"] == 1 and c["image"].startswith("queen-embedded:") and "envFrom" not in c
    assert "PG_HOST" not in {e["name"] for e in c["env"]}
    assert "AS embedded" in dockerfile()


def dockerfile():
    with open(os.path.join(REPO, "Dockerfile")) as f:
        return f.read()


def test_the_image_is_not_root_and_installs_what_the_programs_link():
    text = dockerfile()
    assert text.rstrip().endswith("FROM broker")
    runtime = text[text.index("AS broker"):]
    assert re.findall(r"^USER (\S+)", runtime, re.M) == ["10001:10001", "root", "10001:10001"]
    assert "HEALTHCHECK" in runtime and '["tini", "--", "queen"]' in runtime
    linked = subprocess.run(["ldd", BIN], capture_output=True, text=True, check=True).stdout
    for library, package in (("libuv.so.1", "libuv1"), ("libpq.so.5", "libpq5"), ("libssl.so.3", "libssl3"), ("libz.so.1", "zlib1g")):
        assert library in linked and re.search(r"\b%s\b" % package, runtime)


def test_compose_runs_broker_platform_and_database():
    with open(os.path.join(REPO, "deploy", "compose", "compose.yaml")) as f:
        services = yaml.safe_load(f)["services"]
    assert set(services) == {"postgres", "queen", "platform"}
    assert set(services["queen"]["environment"]) <= settings()
    for name in ("queen", "platform"):
        s = services[name]
        assert s["read_only"] and s["cap_drop"] == ["ALL"] and all(p.startswith("127.0.0.1:") for p in s["ports"])
        assert all(d in services for d in s["depends_on"])
    pg, queen = services["postgres"]["environment"], services["queen"]["environment"]
    assert (pg["POSTGRES_DB"], pg["POSTGRES_USER"], pg["POSTGRES_PASSWORD"]) == (queen["PG_DB"], queen["PG_USER"], queen["PG_PASSWORD"])
