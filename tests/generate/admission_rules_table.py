"""Writes docs/admission-rules.md from the rules: python -m tests.generate.admission_rules_table

Each rule with its source and what happens; at the end what the sources say that no new manifest can break.
"""

from __future__ import annotations

import sys
from pathlib import Path

from admission.all_rules import RULES
from admission.known_faults import KNOWN_FAULTS, KnownFault
from admission.result import Verdict
from admission.rule import Rule

PAGE = Path(__file__).parent.parent.parent / "docs" / "admission-rules.md"

_HEAD = """# The rules of `tpuenv check`

What the API server, the webhooks of Kueue, JobSet and GKE's Ray add-on, KubeRay's controllers and, with
`CLUSTER_MODE=autopilot`, GKE's own webhook do not take of a new manifest, their feature gates at their defaults. Each
rule has manifests in `tests/admission` that break it alone. *Refused*: it is not created. *Never starts*: it is
created, and its pods never are; of a plain Job the API server checks the pods at once.
Written by `python -m tests.generate.admission_rules_table`.

Before the rules, fields are held against the schemas of Kubernetes 1.34, JobSet 0.12.0 and KubeRay 1.7.0, with what the
mutating webhooks fill in: `unknown-field`, `missing-field`, `wrong-type`, `unknown-value`, `out-of-range`, `negative`,
`same-name`.

| rule | kinds | answer | source |
|---|---|---|---|
"""

# What the sources say besides, and why it is no rule here.
LEFT_OUT = (
    (
        "JobSet, jobset_webhook.go, ValidateUpdate; Kueue, ValidateJobOnUpdate and each validateUpdate; CEL rules with "
        "oldSelf",
        "they are about changes of what exists; `check` reads new manifests",
    ),
    (
        "JobSet, validateVolumeClaimPolicies: a claim of that name that exists",
        "what is in the cluster is not checked",
    ),
    (
        "JobSet, ValidateCreate: backoffLimit, podReplacementPolicy and completions of InPlaceRestart; replicas over "
        "1,024 with RestartJob",
        "the feature gates InPlaceRestart and RestartJob are off, and the fields are refused for that",
    ),
    (
        "JobSet, pod_webhook.go",
        "it holds back the pods of a slice until the first of them has a node; none is refused for good",
    ),
    (
        "Kueue, ValidateCreate for a prebuilt Workload and for elastic jobs of other kinds",
        "every kind here is one that Kueue allows; of elastic jobs all but JobSet",
    ),
    (
        "Kueue, validateElasticJob: the scheduling gate in each template",
        "Kueue's mutating webhook puts it there",
    ),
    (
        "Kueue, validateContainer: the resource `pods`",
        "the API server refuses it as a resource of a container: bad-resource",
    ),
    (
        "KubeRay, ValidateRayClusterSpec: minReplicas and maxReplicas must be set",
        "the schema fills them in",
    ),
    (
        "KubeRay, validateWorkerGroupPriority",
        "Kueue 0.19.2 knows KubeRay 1.6 and drops the priority of worker groups when it starts the RayCluster (tried)",
    ),
    (
        "KubeRay, ValidateRayClusterSpec: groups that are suspended without RayJobDeletionPolicy",
        "that gate is on",
    ),
    (
        "KubeRay, validateCollectorOptions, validateNetworkPolicy, validateTLSOptions, and the fields of rocksdb",
        "their gates are off, and the fields are refused for that: ray-feature-off, ray-fault-tolerance-store",
    ),
    (
        "KubeRay, ValidateRayClusterStatus, ValidateRayJobStatus, ValidateRayService..., ValidateRayCronJob...",
        "a new manifest has no status; the two kinds are not queued",
    ),
    (
        "KubeRay, ValidateRayJobSpec: suspend without shutdownAfterJobFinishes",
        "Kueue refuses that sooner: keeps-cluster",
    ),
    (
        "Kubernetes, pkg/apis/core/validation: volume sources one by one, security contexts beyond privileges, "
        "Windows, devices, dynamic resource allocation",
        "pods on TPU slices do without; the API server's words are clear where they do not",
    ),
)


_FAULTS = """
## Known faults of pinned versions

`check` and `submit` say so in a note and refuse nothing.

| until | what has it | what happens | what to do | source |
|---|---|---|---|---|
"""


def page() -> str:
    rows = [f"| `{rule.code}` | {_kinds(rule)} | {_answer(rule)} | {rule.source} |" for rule in RULES]
    left = [f"- {source}: {why}." for source, why in LEFT_OUT]
    faults = [_fault(fault) for fault in KNOWN_FAULTS]
    parts = (_HEAD + "\n".join(rows), _FAULTS + "\n".join(faults), "\n## Left out\n\n" + "\n".join(left))
    return "\n".join(parts) + "\n"


def _fault(fault: KnownFault) -> str:
    issues = ", ".join(f"[{issue.rpartition('/')[2]}]({issue})" for issue in fault.issues)
    return f"| {fault.project} {fault.until} | {fault.manifest} | {fault.what} | {fault.avoid} | {issues} |"


def _kinds(rule: Rule) -> str:
    return "all" if len(rule.kinds) == 4 else ", ".join(rule.kinds)


def _answer(rule: Rule) -> str:
    verdicts = {rule.verdict(kind) for kind in rule.kinds}
    if len(verdicts) > 1:
        return "refused (Job), never starts"
    return "never starts" if verdicts == {Verdict.NEVER} else "refused"


if __name__ == "__main__":
    sys.exit(f"{PAGE} has {PAGE.write_text(page(), encoding='utf-8')} characters")
