"""Why pods are not created: what the events of a JobSet and its Jobs say.

Texts: Kubernetes 1.34: pkg/controller/controller_utils.go (FailedCreate), plugin/pkg/admission/serviceaccount,
apiserver/pkg/admission/plugin (resourcequota, webhook, policy), pod-security-admission; JobSet 0.12.0:
pkg/constants, pkg/webhooks/pod_webhook.go; KubeRay 1.7.0: controllers/ray/utils/constant.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpuenv.jobs.diagnosis.cause import Cause, Pattern, event_words
from tpuenv.jobs.diagnosis.snapshot import Snapshot, time_of
from tpuenv.jobs.job import State

_REASONS = (
    *("FailedCreate", "JobCreationFailed", "HeadlessServiceCreationFailed", "PVCCreationFailed"),
    *("FailedToCreateRayCluster", "FailedToCreateHeadPod", "FailedToCreateWorkerPod", "FailedToCreateRayJobSubmitter"),
)

# Of the other pods of a slice until the first has a node: with exclusive placement every start begins so.
_ON_ITS_WAY = ("follower pod node selector", "leader pod not yet scheduled", "this is an expected, transient error")

_PATTERNS = (
    Pattern(
        code="followers-refused",
        text=rf"denied the request: (?P<why>.*(?:{'|'.join(map(re.escape, _ON_ITS_WAY))}).*)",
        cause="its pods cannot be created: JobSet refuses those that follow the first of a slice ({why})",
        fix="`tpuenv requeue {job}` starts it again from its last checkpoint",
    ),
    Pattern(
        code="service-account",
        text=r'error looking up service account (?P<namespace>[^/\s]+)/(?P<account>[^:\s]+): serviceaccount "',
        cause="its pods cannot be created: namespace {namespace} has no service account {account}",
        fix="set serviceAccountName to the team's account, which `tpuenv render` shows, and submit it again",
    ),
    Pattern(
        code="priority-class",
        text=r"no PriorityClass with name (?P<name>\S+) was found",
        cause="its pods cannot be created: there is no PriorityClass {name}",
        fix="remove priorityClassName; the label kueue.x-k8s.io/priority-class gives the job its priority",
    ),
    Pattern(
        code="resource-quota",
        text=r"exceeded quota: (?P<quota>[^,]+), (?P<amounts>requested: .*)",
        cause="its pods cannot be created: ResourceQuota {quota} of the namespace is used up ({amounts})",
        fix="cancel jobs of the team, or let an administrator raise that quota",
    ),
    Pattern(
        code="policy",
        text=r"ValidatingAdmissionPolicy '(?P<policy>[^']+)' (?:with binding '[^']*' )?denied request: (?P<why>.*)",
        cause="its pods cannot be created: the policy {policy} of the cluster refuses them ({why})",
        fix="change what it names in the pod template, and submit it again",
    ),
    Pattern(
        code="pod-security",
        text=r'violates PodSecurity "(?P<level>[^"]+)": (?P<why>.*)',
        cause='its pods cannot be created: they violate the namespace\'s PodSecurity "{level}" ({why})',
        fix="remove those fields from the pod template, and submit it again",
    ),
    Pattern(
        code="webhook-down",
        text=r'failed calling webhook "(?P<webhook>[^"]+)": (?P<why>.*)',
        cause="its pods cannot be created: the webhook {webhook} does not answer ({why})",
        fix="wait a minute; if it stays, an administrator restarts the controller behind the webhook",
    ),
    Pattern(
        code="webhook-denied",
        text=r'admission webhook "(?P<webhook>[^"]+)" denied the request: (?P<why>.*)',
        cause="its pods cannot be created: the webhook {webhook} refuses them ({why})",
        fix="correct what it names, and submit the job again",
    ),
    Pattern(
        code="pods-refused",
        text=r"(?P<why>.+)",
        cause="its pods cannot be created: {why}",
        fix="correct what it names, and submit the job again",
    ),
)


def creation_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """Only while pods are missing, and since the last was created: events of earlier starts stay for an hour."""
    job = snapshot.job
    if not job.missing:
        return
    pods = {pod.name for pod in job.pods}
    since = max((pod.created[:19] for pod in job.pods), default="")
    for event in reversed(snapshot.events):
        if time_of(event) < since:
            return
        about, message = event.get("involvedObject") or {}, str(event.get("message") or "")
        if event.get("reason") not in _REASONS or about.get("name") in pods:
            continue
        if job.state != State.STUCK and any(words in message for words in _ON_ITS_WAY):
            continue
        for pattern in _PATTERNS:
            if said := pattern.cause_of(str(event["reason"]), message, job=job.name):
                yield Cause(code=pattern.code, cause=said[0], fix=said[1], evidence=(event_words(event),))
                break
