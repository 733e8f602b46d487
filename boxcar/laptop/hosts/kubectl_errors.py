"""What kubectl said, as an error that says what is the matter and what to type next. Pure.

kubectl speaks English whatever the locale. The patterns are as kubectl 1.37 and a server's own
answers have them; what is not known here is told in kubectl's own words.
"""

from __future__ import annotations

import re

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark, quotation


class Refused(InputError):
    """The cluster has said no, and will again."""


class OverQuota(Refused):
    """A quota is used up, or less than what is asked for."""


class NotThere(Refused):
    """There is no such object."""


class AlreadyThere(BoxcarError):
    """An object of that name exists."""


@dataclass(frozen=True)
class _Case:
    """`pattern` finds it, and its named groups are what the sentence names."""

    pattern: re.Pattern[str]
    sentence: str
    error: type[InputError] | type[TemporaryError] = Refused


_CASES = (
    # Where kubectl looks if nothing says where the cluster is.
    _Case(
        re.compile(r"localhost:8080|no configuration has been provided|current-context is not set"),
        mark(
            "kubectl has no cluster to ask. Set KUBECONFIG, or name the context in the "
            "profile (kubernetes: {{context: NAME}}), and check that this answers: kubectl "
            "get pods"
        ),
    ),
    _Case(
        re.compile(r"(?:context \"|for specified context: )(?P<context>[^\"\s]+)"),
        mark(
            "kubectl knows no context {context}. Name one of these in the profile (kubernetes: "
            "{{context: NAME}}): kubectl config get-contexts"
        ),
    ),
    _Case(
        re.compile(r"error loading config file \"(?P<file>[^\"]+)\": (?P<why>.*)"),
        mark("kubectl cannot read {file}: {why}. Mend it, or set KUBECONFIG to another file"),
    ),
    _Case(
        re.compile(r"exec: executable (?P<program>\S+) (?:not found|failed)"),
        mark(
            "{program}, by which kubectl logs in to this cluster, gave no login. Log in as your "
            "cluster's page says, and check that this answers: kubectl get pods"
        ),
    ),
    _Case(
        re.compile(r"\(Unauthorized\)|must be logged in to the server|Please enter Username"),
        mark(
            "the cluster does not accept this login. Log in again as your cluster's page says, "
            "and check that this answers: kubectl get pods"
        ),
    ),
    _Case(
        re.compile(r"new content in namespace (?P<namespace>\S+) because it is being terminated"),
        mark(
            "the namespace {namespace} is being deleted. Name another one in the profile "
            "(kubernetes: {{namespace: NAME}}), or create it again once it is gone"
        ),
    ),
    _Case(
        re.compile(r"namespaces \"(?P<namespace>[^\"]+)\" not found"),
        mark(
            "the cluster has no namespace {namespace}. Name another one in the profile "
            "(kubernetes: {{namespace: NAME}}), or type: kubectl create namespace {namespace}"
        ),
    ),
    _Case(
        re.compile(
            r"exceeded quota: (?P<quota>[^,]+), requested: (?P<wanted>.+?), used: (?P<used>.+?), "
            r"limited: (?P<most>[^\s,]+(?:,[^\s,]+)*)"
        ),
        mark(
            "the quota {quota} is used up (wanted: {wanted}; used: {used}; limit: {most}). Ask "
            "for less, delete what you no longer need, or have the quota raised"
        ),
        OverQuota,
    ),
    _Case(
        re.compile(r"failed quota: (?P<quota>[^:]+): must specify (?P<lacking>.+)"),
        mark(
            "the quota {quota} wants each pod to say what it needs ({lacking}). Say it in the "
            "profile (kubernetes: {{cpu: 8, memory: 64Gi}})"
        ),
    ),
    _Case(
        re.compile(
            r"User \"[^\"]*\" cannot (?P<verb>\w+) resource \"(?P<resource>[^\"]+)\""
            r".* in the namespace \"(?P<namespace>[^\"]+)\""
        ),
        mark(
            "you may not {verb} {resource} in the namespace {namespace}. Ask the cluster's admins "
            "for a Role with it"
        ),
    ),
    _Case(
        re.compile(r"connection to the server (?P<server>\S+) was refused"),
        mark(
            "the cluster's server {server} refuses connections. Check your network and VPN, and "
            "that this answers: kubectl get pods"
        ),
        TemporaryError,
    ),
    _Case(
        re.compile(r"Unable to connect to the server: (?P<why>.+)"),
        mark(
            "the cluster's server does not answer ({why}). Check your network and VPN, and that "
            "this answers: kubectl get pods"
        ),
        TemporaryError,
    ),
)
# Of these a person has to mend something, whatever else was said.
_PERSON = (
    "(Forbidden)",
    "(Invalid)",
    "(BadRequest)",
    " is invalid: ",
    "does not exist",
    "error validating data",
)
# That very object is gone, and another one has its name.
_ANOTHER = "UID in precondition"
# Its own log, which comes before what it says: `E1129 07:12:01.123456   4711 memcache.go:265] …`.
_OF_KLOG = re.compile(r"[EWI]\d{4} \d\d:")


def error_of(said: str) -> BoxcarError:
    """Of the stderr of a kubectl that failed. A TemporaryError where it may go better later; the
    call may have taken effect then.
    """
    if "(AlreadyExists)" in said or "already exists" in said:
        return AlreadyThere(_told(said))
    for case in _CASES:
        if found := case.pattern.search(said):
            return case.error(Sentence(case.sentence, **found.groupdict()))
    if "(NotFound)" in said or _ANOTHER in said:
        return NotThere(_told(said))
    return (Refused if any(word in said for word in _PERSON) else TemporaryError)(_told(said))


def _told(said: str) -> Sentence:
    last = [line for line in said.splitlines() if not _OF_KLOG.match(line)][-3:]
    return _("kubectl: {said}", said=quotation(" ".join(last)[:500] or _("no output")))
