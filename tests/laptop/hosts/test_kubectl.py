"""What kubectl says, as a person is told it."""

from __future__ import annotations

import pytest

from boxcar.laptop.hosts.kubectl_errors import AlreadyThere, NotThere, Refused, error_of
from boxcar.shared.errors import InputError, TemporaryError, message_of

KLOG = "E1129 07:12:01.123456    4711 memcache.go:265] couldn't get current server API group list\n"
FORBIDDEN = "Error from server (Forbidden): "


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (
            "The connection to the server localhost:8080 was refused - did you specify the right?",
            InputError,
            "Set KUBECONFIG",
        ),
        ('error: context "lab" does not exist', Refused, "no context lab."),
        (
            "Error in configuration: context was not found for specified context: lab",
            Refused,
            "no context lab.",
        ),
        (
            'error: error loading config file "/h/k": yaml: line 1: did not find expected node',
            Refused,
            "cannot read /h/k: yaml: line 1",
        ),
        (
            "Unable to connect to the server: getting credentials: exec: executable "
            "gke-gcloud-auth-plugin not found",
            Refused,
            "gke-gcloud-auth-plugin, by which kubectl logs in",
        ),
        (
            "error: You must be logged in to the server (Unauthorized)",
            Refused,
            "does not accept this login",
        ),
        ("Please enter Username: error: EOF", Refused, "does not accept this login"),
        (
            FORBIDDEN
            + 'error when creating "STDIN": jobs.batch "a" is forbidden: unable to create '
            "new content in namespace me because it is being terminated",
            Refused,
            "the namespace me is being deleted",
        ),
        (
            'Error from server (NotFound): error when creating "STDIN": namespaces "me" not found',
            Refused,
            "kubectl create namespace me",
        ),
        (
            FORBIDDEN + 'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: '
            "pods=2, limited: pods=2",
            Refused,
            "the quota few is used up (wanted: pods=1; used: pods=2; limit: pods=2)",
        ),
        (
            FORBIDDEN + 'jobs.batch is forbidden: User "jane" cannot create resource "jobs" in API '
            'group "batch" in the namespace "me"',
            Refused,
            "you may not create jobs in the namespace me",
        ),
        (
            FORBIDDEN + 'pods "a" is forbidden: failed quota: few: must specify limits.cpu for: '
            "agent; limits.memory for: agent",
            Refused,
            "the quota few wants each pod to say what it needs (limits.cpu for: agent; limits",
        ),
        (
            # As 1.20 says it of fields that came later; newer servers say BadRequest.
            'error: error validating "STDIN": error validating data: ValidationError(Job.spec): '
            'unknown field "suspend" in io.k8s.api.batch.v1.JobSpec',
            Refused,
            'unknown field "suspend"',
        ),
        (FORBIDDEN + "jobs is forbidden", Refused, "jobs is forbidden"),
        ('Error from server (NotFound): pods "a" not found', NotThere, 'pods "a" not found'),
        (
            'Error from server (AlreadyExists): jobs.batch "a" already exists',
            AlreadyThere,
            "already exists",
        ),
        (
            KLOG * 4 + "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
            TemporaryError,
            "does not answer (dial tcp 10.0.0.1:6443: i/o timeout)",
        ),
        (
            "The connection to the server 10.0.0.1:6443 was refused - did you specify the right?",
            TemporaryError,
            "10.0.0.1:6443 refuses connections",
        ),
        ("Error from server (Timeout): try again", TemporaryError, "try again"),
    ],
)
def test_it_is_said_what_is_the_matter_and_whether_it_may_pass(said, kind, told) -> None:
    found = error_of(said)
    assert isinstance(found, kind)
    assert told in message_of(found).text and "memcache" not in str(found)
