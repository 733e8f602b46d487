"""What kubectl says, as a person is told it."""

from __future__ import annotations

from boxcar.laptop.hosts.kubectl import AlreadyThere, Refused, _error
from boxcar.shared.errors import InputError, TemporaryError

KLOG = "E1129 07:12:01.123456    4711 memcache.go:265] couldn't get current server API group list\n"


def test_without_a_context_it_is_said_what_to_set() -> None:
    said = (
        "The connection to the server localhost:8080 was refused - did you specify the right host?"
    )
    found = _error(KLOG + said)
    assert isinstance(found, InputError) and "Set KUBECONFIG" in str(found)


def test_a_server_that_is_not_there_is_told_without_the_log_of_kubectl() -> None:
    found = _error(
        KLOG * 4 + "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout"
    )
    assert isinstance(found, TemporaryError)
    assert "Unable to connect" in str(found) and "memcache" not in str(found)


def test_a_no_is_for_the_person_and_an_object_that_is_there_is_neither() -> None:
    assert isinstance(_error("Error from server (Forbidden): jobs is forbidden"), Refused)
    exists = 'Error from server (AlreadyExists): jobs.batch "a" already exists'
    assert isinstance(_error(exists), AlreadyThere)
