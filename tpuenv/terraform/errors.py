"""Terraform's errors explained in the words of this project: what to set, or which command to run."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Of these the foundation stack holds the only copies. Their protection is lifted by DESTROY_DATA as well.
_DATA = {
    "google_storage_bucket": "the bucket's objects",
    "google_artifact_registry_repository": "the images",
    "google_vertex_ai_tensorboard": "the experiments",
}

# The network and the subnet are protected, too: a changed range would replace the subnet, and with it the cluster.
_CHANGED = (
    "a setting was changed that cannot change in place, such as a name, CLUSTER_MODE, REGION or a range (SUBNET_CIDR, "
    "PODS_CIDR, SERVICES_CIDR)"
)

KILLED = (
    "Killed: Terraform was ended, by a person or for lack of memory, before it could save its state and release its "
    "lock. What it created may be in no state. This searches for it, and imports it:\n  tpuenv recover"
)

# https://developer.hashicorp.com/terraform/language/meta-arguments/lifecycle#prevent_destroy
_PROTECTED = re.compile(r"Resource (\S+)(?: \([^)]*\))? has lifecycle\.prevent_destroy set")

_NO_LOGIN = re.compile(
    "could not find default credentials|Attempted to load application default credentials|invalid_grant|reauth related "
    "error"
)


@dataclass(frozen=True, kw_only=True)
class _Explanation:
    """The explanation of every error that `pattern` matches. `{names}` in `text` are the matches of its group, if it
    has one, without repetition; `unnamed` stands there if the group matched nothing.
    """

    pattern: re.Pattern[str] | str
    text: str
    unnamed: str = ""

    def of(self, output: str) -> str:
        matches = list(re.finditer(self.pattern, output))
        names = dict.fromkeys(match[1] for match in matches if match.re.groups and match[1])
        return self.text.replace("{names}", ", ".join(names) or self.unnamed) if matches else ""


_EXPLANATIONS = (
    # The provider's own protection, which no stack sets: an import writes it into the state.
    _Explanation(
        pattern="Cannot destroy cluster because deletion_protection is set to true",
        text="Imported: the state says that Google's provider must not delete the cluster, as after `tpuenv recover`. "
        "A deploy corrects that, then destroy again:\n"
        "  DELETION_PROTECTION=false tpuenv deploy foundation cluster",
    ),
    # How a shell and cdktf report signal 9.
    _Explanation(pattern=r"Terraform CLI failed with exit code 137\b", text=KILLED),
    _Explanation(
        pattern="Unsupported state file format|in state: State contains",
        text="Damaged: Terraform cannot read the state. The bucket keeps older versions; this restores the last whole "
        "one:\n  tpuenv recover",
    ),
    _Explanation(
        pattern="Saved plan is stale",
        text="Stale: the state of this stack was changed after it was planned, so nothing of that plan was applied. "
        "Find out who deploys besides this run, then run this again: it makes a new plan.",
    ),
    _Explanation(
        pattern="storage: bucket doesn't exist",
        text="No state bucket: the bucket that Terraform keeps its state in does not exist. If it existed before, "
        "Google restores it for some days, with all states, as long as there is no new one of its name:\n"
        "  gcloud storage buckets list --soft-deleted\n"
        "  gcloud storage restore gs://BUCKET#GENERATION\n"
        "Only in a project that never had one, an administrator creates it:\n  tpuenv bootstrap",
    ),
    # https://cloud.google.com/service-usage/docs/troubleshooting
    _Explanation(
        pattern=r"Error 403: (.{3,60}?) has not been used in project \S+ before or it is disabled|"
        r"\b(?:SERVICE_DISABLED|accessNotConfigured)\b",
        text="Google API not enabled: {names}. An administrator enables all of them, once per project:\n"
        "  tpuenv bootstrap",
        unnamed="one that this environment uses",
    ),
    _Explanation(
        pattern=_NO_LOGIN,
        text="Google does not know who you are, or your login has expired:\n  gcloud auth application-default login",
    ),
    _Explanation(
        pattern=r"exec: executable tpuenv failed",
        text="The providers of Kubernetes and Helm get their tokens from `tpuenv token`, and it had none to give. This "
        "says why:\n  tpuenv token >/dev/null",
    ),
    _Explanation(
        pattern=r"executable tpuenv not found",
        text="The providers of Kubernetes and Helm get their tokens from `tpuenv token`, and there is no tpuenv on the "
        "PATH. In the checkout:\n  source .venv/bin/activate",
    ),
    # The API server's 401, in its own words and in those of client-go.
    _Explanation(
        pattern=r"Error: Unauthorized\b|the server has asked for the client to provide credentials",
        text="The cluster does not accept the login of this machine. Log in again, as an account that may connect to "
        "the cluster (container.clusters.connect):\n  gcloud auth application-default login",
    ),
    # The provider deletes a bucket with objects only if the state says so, and only a deploy writes that there.
    _Explanation(
        pattern=r"Error trying to delete bucket (\S+)[^`]*without `force_destroy` set to true",
        text="Not empty: {names}. Nothing in it was deleted.\n"
        "If the whole environment goes, with its data:\n"
        "  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv deploy foundation\n"
        "  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy\n"
        "If one team goes: copy what you need of its bucket, empty the bucket, and deploy again.",
    ),
    # Google's 409 in its services' several words, and Kubernetes' own.
    _Explanation(
        pattern=r"(?:Error 409:|Cannot create resource that)(?:(?!Error).){0,300}?already (?:exists|own it)"
        r"(?:(?:(?!Error:).){0,300}?\bwith ([a-z_]+\.[\w-]+))?",
        text="Exists already: {names} exists but is not in the state, as after a deploy that was killed. This searches "
        "for it, and imports it:\n  tpuenv recover",
        unnamed="a resource",
    ),
    _Explanation(
        pattern=r"failed post-(?:install|upgrade): .{0,80}?job gate failed",
        text="The webhooks of Kueue or JobSet do not answer. The gate says what it tried, and what to check:\n"
        "  kubectl logs -n kueue-system job/gate\n"
        "Deploy again when that is repaired.",
    ),
)


def explain(terraform_output: str) -> str:
    """What to do about the errors in the output of Terraform, or of cdktf around it; "" where none is known.

    The output may have cdktf's frames and indents, colours, and the same error several times.
    """
    text = _plain(terraform_output)
    flat = " ".join(text.split())
    explanations = [
        _protected(flat),
        *_locked(text),
        *(explanation.of(flat) for explanation in _EXPLANATIONS),
        _in_use(flat),
        _other_slice(flat),
        *_not_drained(flat),
    ]
    return "\n\n".join(explanation for explanation in explanations if explanation)


def no_login(terraform_output: str) -> bool:
    """Whether Terraform failed because Google does not know who asks, or the login has expired."""
    return _NO_LOGIN.search(" ".join(_plain(terraform_output).split())) is not None


def _plain(output: str) -> str:
    """Without escape sequences, without the bars of Terraform's boxes and the stack's name that cdktf puts in front."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    return re.sub(r"^[ \t]*([a-z0-9-]+  )?[ \t]*[│╷╵] ?", "", text, flags=re.MULTILINE)


def protected(terraform_output: str) -> dict[str, str]:
    """The resources that Terraform refused to destroy, by address, with the settings that lift their protection."""
    flat = " ".join(_plain(terraform_output).split())
    return {address: _lifting(address) for address in _PROTECTED.findall(flat)}


def _lifting(address: str) -> str:
    return "DELETION_PROTECTION=false" + " DESTROY_DATA=true" * (address.split(".")[0] in _DATA)


def _protected(flat: str) -> str:
    refused = protected(flat)
    if not refused:
        return ""
    types = dict.fromkeys(address.split(".")[0] for address in refused)
    warning = ""
    if data := [_DATA[type_] for type_ in types if type_ in _DATA]:
        warning = f"\nThat deletes {' and '.join(data)} for good. If it stays, this stack costs almost nothing."
    resources = "\n".join(f"  {address}: protected until {lifting}" for address, lifting in refused.items())
    return (
        f"Protected: Terraform refused before it changed anything in this stack.\n{resources}\n"
        f"If you mean to destroy it:  {max(refused.values(), key=len)} tpuenv destroy{warning}\n"
        f"If this was a deploy, {_CHANGED}: set it back."
    )


def _locked(text: str) -> list[str]:
    """Terraform describes a lock in a block of its own, in every error of which it is the cause."""
    locks = {}
    for after in text.split("Lock Info:")[1:]:
        block = re.split(r"\n\s*\n", after, maxsplit=1)[0]
        lock = dict(re.findall(r"^\s*(\w+):[ \t]*(.*?)\s*$", block, re.MULTILINE))
        if "ID" in lock:
            locks[lock["ID"]] = lock
    return [_lock(lock) for lock in locks.values()]


def _lock(lock: dict[str, str]) -> str:
    in_bucket = re.fullmatch(r"gs://.*/([a-z0-9-]+)/[^/]*\.tflock", lock.get("Path", ""))
    stack = in_bucket[1] if in_bucket else "STACK"
    who, created = lock.get("Who") or "somebody", lock.get("Created") or "an unknown time"
    return (
        f"Locked: the state of {stack} is held by {who} since {created}.\n"
        "If that run is still going, wait for it. If it was killed, ask its owner whether it has ended; then:\n"
        "  tpuenv recover\n"
        f"or, for this lock alone:  terraform -chdir=cdktf.out/stacks/{stack} force-unlock {lock['ID']}"
    )


def _in_use(flat: str) -> str:
    """Google neither deletes nor replaces what something else refers to."""
    uses = dict.fromkeys(re.findall(r"'([^' ]+)' is already being used by '([^' ]+)'", flat))
    if not uses:
        return ""
    lines = [f"In use: {used} is used by {user}. Google left it as it is." for used, user in uses]
    return "\n".join(
        [
            *lines,
            f"If this was a deploy, {_CHANGED}: set it back.",
            "If this was a destroy, destroy what uses it first: `tpuenv destroy` without the name of a stack keeps the "
            "order; what was created by hand is deleted by hand.",
        ]
    )


def _other_slice(flat: str) -> str:
    """Only where the shape of a group is new in the state are its pools not replaced with it: docs/changes.md."""
    refusals = (
        r"is not a valid size of TPU pod slice|Machine type of a TPU node pool cannot be updated|in the gang mode of"
    )
    if "Error updating NodePool" not in flat or not re.search(refusals, flat):
        return ""
    pools = dict.fromkeys(re.findall(r"with (google_container_node_pool\.[\w-]+)", flat)) or {"ADDRESS": None}
    replace = " ".join(f"-replace={pool}" for pool in pools)
    return (
        "Another slice: Google cannot turn a node pool that exists into it, and left the pool as it was. This replaces "
        "it, and stops what runs on it:\n"
        f"  terraform -chdir=cdktf.out/stacks/tpu-node-pools apply {replace}"
    )


def _not_drained(flat: str) -> list[str]:
    failed = re.findall(r"failed pre-delete: .{0,80}?job (drain|evict)-(\S+) failed", flat)
    return [
        f"Not drained: ClusterQueue {queue} still has jobs, or Kueue does not answer. Nothing was deleted; the job "
        "says which:\n"
        f"  kubectl logs -n kueue-system job/{release}-{queue}\n"
        f"  kubectl get workloads -n {queue}\n"
        "End the jobs that do not stop, and run this again; or deploy with the team, which opens the queue again."
        for release, queue in dict.fromkeys(failed)
    ]
