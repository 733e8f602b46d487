"""What a test may let happen to a cluster, seen through the real kubectl."""

from __future__ import annotations

import json
from pathlib import Path

from kube_cluster import KubeCluster, kube_cluster
from kube_objects import WAITS, applied, ended, job
from waiting import until


def test_a_fault_happens_once_before_or_after_the_effect(kube: KubeCluster) -> None:
    text = json.dumps(job("late", WAITS))
    kube.fault("POST .*/jobs", 500, after=True)
    assert kube.tried("create", "-f", "-", stdin=text).returncode != 0
    with applied(kube, job("late", WAITS)):
        assert len(kube.all("jobs")) == 1
        kube.fault("GET .*/jobs", 409)
        assert kube.tried("get", "jobs").returncode != 0
        assert kube.tried("get", "jobs").returncode == 0


def test_a_watch_that_ends_is_taken_up_again(kube: KubeCluster) -> None:
    with applied(kube, job("watched", "sleep 1")):
        pod = kube.running_pod("watched")
        for _ in range(3):
            kube.make("end-watches")
        kube.kubectl("wait", "--for=condition=complete", "job/watched", "--timeout=60s")
        assert kube.get("pod", pod)["status"]["phase"] == "Succeeded"


def test_a_suspended_job_has_no_pod_until_it_goes_on(kube: KubeCluster) -> None:
    with applied(kube, job("held", WAITS, suspend=True)):
        until(lambda: "Suspended" in kube.kubectl("get", "job", "held", "-o", "yaml"))
        assert kube.pods("held") == []
        kube.kubectl("patch", "job", "held", "-p", '{"spec": {"suspend": false}}')
        kube.running_pod("held")


def test_a_job_of_that_name_is_not_deleted_if_it_is_another_one(kube: KubeCluster) -> None:
    with applied(kube, job("mine", WAITS)):
        options = {"preconditions": {"uid": "another"}, "propagationPolicy": "Foreground"}
        path = "/apis/batch/v1/namespaces/default/jobs/mine"
        done = kube.tried("delete", "--raw", path, "-f", "-", stdin=json.dumps(options))
        assert "Precondition failed" in done.stderr
        assert len(kube.all("jobs")) == 1


def test_a_secret_goes_with_the_job_that_owns_it(kube: KubeCluster) -> None:
    with applied(kube, job("owner", WAITS)):
        uid = kube.get("job", "owner")["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": uid}
        meta = {"name": "owned", "ownerReferences": [owner]}
        kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {}})
    until(lambda: kube.all("secrets") == [])


def test_what_ran_before_a_restart_is_in_the_previous_log(kube: KubeCluster) -> None:
    again = {"restartPolicy": "OnFailure", "volumes": [{"name": "v", "emptyDir": {}}]}
    script = "[ -e /v/a ] && echo second && exit; touch /v/a; echo first; exit 1"
    main = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    with applied(kube, job("twice", script, pod=again, main=main, backoffLimit=3)):
        assert ended(kube, "twice") == "Complete CompletionsReached"
        assert kube.kubectl("logs", "job/twice") == "second\n"
        assert kube.kubectl("logs", "--previous", "job/twice") == "first\n"


def test_a_pod_stays_with_its_lost_node_and_is_replaced_when_the_node_is_deleted(
    tmp_path: Path,
) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    one = job("moves", WAITS, podFailurePolicy={"rules": [rule]})
    with kube_cluster(tmp_path / "k") as kube, applied(kube, one):
        first = kube.running_pod("moves")
        kube.make("lose-node", node="node-1")
        done = kube.tried("exec", first, "--", "true")
        assert (done.returncode, "no route to host" in done.stderr) == (1, True)
        (pod,) = kube.pods("moves")
        assert (pod["status"]["phase"], "deletionTimestamp" in pod["metadata"]) == ("Running", True)
        kube.make("delete-node", node="node-1")
        second = kube.get("pod", kube.running_pod("moves"))
        assert second["spec"]["nodeName"] == "node-2"
        assert "failed" not in kube.get("job", "moves")["status"]


def test_an_old_cluster_knows_no_pod_failure_policy(tmp_path: Path) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [43]}}
    one = job("old", "exit 43", podFailurePolicy={"rules": [rule]}, backoffLimit=1)
    with kube_cluster(tmp_path / "k", version="1.24") as kube:
        assert json.loads(kube.kubectl("version", "-o", "json"))["serverVersion"]["minor"] == "24"
        kube.apply(one)
        assert ended(kube, "old") == "Failed BackoffLimitExceeded"
        assert "podFailurePolicy" not in kube.get("job", "old")["spec"]
