"""The server of the tests, through the real kubectl: what a test of Boxcar may rely on."""

from __future__ import annotations

import json

from kube_cluster import KubeCluster
from kube_objects import WAITS, applied, claim, ended, job, mounted
from waiting import until


def test_a_pod_is_a_process_with_its_claim_its_secret_and_its_name(kube: KubeCluster) -> None:
    kube.kubectl("create", "secret", "generic", "keys", "--from-literal=TOKEN=s3cret")
    pod, main = mounted("tier", "/mnt/tier")
    main["envFrom"] = [{"secretRef": {"name": "keys"}}]
    name = {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}
    main["env"] = [{"name": "JOB", "valueFrom": name}, {"name": "ALL", "value": "$(JOB)!"}]
    script = "echo $TOKEN $ALL $$ >/mnt/tier/said; echo done >/dev/termination-log"
    with applied(kube, claim("tier"), job("one", script, pod=pod, main=main)):
        assert ended(kube, "one") == "Complete CompletionsReached"
        assert (kube.claim_folder("tier") / "said").read_text() == "s3cret one! 1\n"
        state = kube.pods("one")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["message"]) == (0, "done\n")
    assert kube.pods("one") == []
    kube.kubectl("delete", "secret", "keys")


def test_exec_carries_input_output_errors_and_the_exit_code(kube: KubeCluster) -> None:
    with applied(kube, job("shell", WAITS)):
        pod = kube.running_pod("shell")
        data = b"\x00\xff" * 200_000
        assert len(kube.tried("exec", "-i", pod, "--", "cat", stdin=data).stdout) > 200_000
        done = kube.tried("exec", "-i", pod, "--", "sha256sum", stdin="abc")
        assert done.stdout.startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9c")
        done = kube.tried("exec", pod, "--", "sh", "-c", "echo no >&2; exit 7")
        assert (done.returncode, done.stderr.splitlines()[0]) == (7, "no")
        kube.make("cut-exec", bytes=3)
        done = kube.tried("exec", pod, "--", "sh", "-c", "echo whole; sleep 600")
        assert (done.returncode, done.stdout) == (0, "who")


def test_logs_are_followed_to_the_end(kube: KubeCluster) -> None:
    with applied(kube, job("talks", "echo a; sleep 0.5; echo b")):
        kube.running_pod("talks")
        assert kube.kubectl("logs", "-f", "job/talks") == "a\nb\n"
        assert kube.kubectl("logs", "--tail=1", "job/talks") == "b\n"


def test_exit_codes_decide_whether_a_job_tries_again(kube: KubeCluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [43]}}
    policy = {"rules": [rule]}
    pod, main = mounted("count", "/t")
    script = "echo x >>/t/tries; [ $(wc -l </t/tries) = 3 ] && exit 43; exit 75"
    both = job("tries", script, pod=pod, main=main, backoffLimit=9, podFailurePolicy=policy)
    with applied(kube, claim("count"), both):
        assert ended(kube, "tries") == "Failed PodFailurePolicy"
        assert kube.get("job", "tries")["status"]["failed"] == 3
    with applied(kube, job("gives-up", "exit 1", backoffLimit=1)):
        assert ended(kube, "gives-up") == "Failed BackoffLimitExceeded"


def test_a_disrupted_pod_costs_no_try_where_the_policy_ignores_it(kube: KubeCluster) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    one = job("kept", WAITS, podFailurePolicy={"rules": [rule]})
    with applied(kube, one):
        first = kube.running_pod("kept")
        kube.make("evict", pod=first)
        until(lambda: kube.running_pod("kept") != first)
        old = kube.get("pod", first)["status"]
        assert (old["phase"], old["reason"]) == ("Failed", "Evicted")
        assert "failed" not in kube.get("job", "kept")["status"]
        kube.make("out-of-memory", pod=kube.running_pod("kept"))
        assert ended(kube, "kept") == "Failed BackoffLimitExceeded"
        states = [pod["status"]["containerStatuses"][0]["state"] for pod in kube.pods("kept")]
        ends = {(one["terminated"]["reason"], one["terminated"]["exitCode"]) for one in states}
        assert ("OOMKilled", 137) in ends


def test_a_pod_says_why_it_waits(kube: KubeCluster) -> None:
    kube.make("image", name="nowhere", **{"is": "missing"})
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "99"}}}
    with applied(
        kube,
        job("pulls", "true", main={"image": "nowhere/x:1"}),
        job("large", "true", main=gpus),
        claim("unbound", storage_class="never"),
        job("tierless", "true", pod=mounted("unbound", "/t")[0]),
    ):

        def said(name: str) -> str:
            (pod,) = kube.pods(name) or [{"status": {}}]
            waits = [
                one["state"].get("waiting", {}).get("reason", "")
                for one in pod["status"].get("containerStatuses", [])
            ]
            told = [
                one["message"]
                for one in pod["status"].get("conditions", [])
                if one.get("reason") == "Unschedulable"
            ]
            return " ".join(waits + told)

        until(lambda: said("pulls") == "ImagePullBackOff")
        until(lambda: "Insufficient nvidia.com/gpu" in said("large"))
        until(lambda: "unbound immediate PersistentVolumeClaims" in said("tierless"))


def test_a_quota_refuses_the_pod_and_the_job_says_so(kube: KubeCluster) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "1"}},
    }
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    with applied(kube, quota, job("greedy", "true", main=gpus)):
        events = ("events", "--field-selector", "involvedObject.name=greedy")
        until(lambda: any("exceeded quota: few" in one["message"] for one in kube.all(*events)))


def test_what_the_schema_or_the_cluster_does_not_take_is_refused(kube: KubeCluster) -> None:
    half = job("half", "true", main={"resources": {"limits": {"nvidia.com/gpu": 0.5}}})
    dry = ("apply", "--dry-run=server", "-f", "-")
    assert "must be an integer" in kube.tried(*dry, stdin=json.dumps(half)).stderr
    odd = kube.tried(*dry, "--validate=strict", stdin=json.dumps(job("odd", "true", backof=1)))
    assert 'unknown field "spec.backof"' in odd.stderr
    fine = kube.tried(*dry, stdin=json.dumps(job("fine", "true")))
    assert "created (server dry run)" in fine.stdout
    assert kube.all("jobs") == []


def test_can_i_answers_what_the_test_says(kube: KubeCluster) -> None:
    assert kube.kubectl("auth", "can-i", "create", "jobs") == "yes\n"
    kube.make("deny", words="create pods/exec")
    asked = kube.tried("auth", "can-i", "create", "pods", "--subresource=exec")
    kube.make("no-faults")
    assert (asked.returncode, asked.stdout) == (1, "no\n")
