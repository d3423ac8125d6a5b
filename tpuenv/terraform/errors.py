"""Terraform's messages in the words of this project: what to set, or which command to run."""

from __future__ import annotations

import re

# Of these the foundation stack holds the only copies. Their protection is lifted by DESTROY_DATA as well.
_DATA = {
    "google_storage_bucket": "the bucket's objects",
    "google_artifact_registry_repository": "the images",
    "google_vertex_ai_tensorboard": "the experiments",
}


# The network and the subnet are protected, too: a changed range would replace the subnet, and with it the cluster.
_CHANGED = (
    "a setting was changed that cannot change in place, such as a name, REGION or a range (SUBNET_CIDR, PODS_CIDR, "
    "SERVICES_CIDR)"
)

_PROTECTED = re.compile(r"Resource (\S+)(?: \([^)]*\))? has lifecycle\.prevent_destroy set")

KILLED = (
    "Killed: Terraform was ended, by somebody or for want of memory, before it could save its state and free its lock. "
    "What it made may be in no state. This looks, and puts it right:\n  tpuenv recover"
)


def explain(terraform_output: str) -> str | None:
    """What to do about the errors in the output of Terraform, or of cdktf around it. None: nothing that is known.

    Pure. The output may have cdktf's frames and indents, colours, and the same error several times.
    """
    text = _plain(terraform_output)
    flat = " ".join(text.split())
    found = [
        _protected(flat),
        *_locked(text),
        _imported(flat),
        _killed(flat),
        _damaged(flat),
        _stale(flat),
        _no_bucket(flat),
        _api_off(flat),
        _no_credentials(flat),
        _expired(flat),
        _no_plugin(flat),
        _not_empty(flat),
        _in_use(flat),
        _other_slice(flat),
        _exists(flat),
        _gate_closed(flat),
        *_not_drained(flat),
    ]
    return "\n\n".join(each for each in found if each) or None


def _plain(output: str) -> str:
    """Without escape sequences, without the bars of Terraform's boxes and the stack's name that cdktf puts in front."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    return re.sub(r"^[ \t]*([a-z0-9-]+  )?[ \t]*[│╷╵] ?", "", text, flags=re.MULTILINE)


def protected(terraform_output: str) -> dict[str, str]:
    """The resources that Terraform refused to destroy, by address, each with the settings that lift its protection."""
    flat = " ".join(_plain(terraform_output).split())
    return {address: _lifting(address) for address in _PROTECTED.findall(flat)}


def _lifting(address: str) -> str:
    return "DELETION_PROTECTION=false" + " DESTROY_DATA=true" * (address.split(".")[0] in _DATA)


def _protected(flat: str) -> str | None:
    """https://developer.hashicorp.com/terraform/language/meta-arguments/lifecycle#prevent_destroy"""
    refused = protected(flat)
    if not refused:
        return None
    lost = list(dict.fromkeys(_DATA[kind] for kind in (each.split(".")[0] for each in refused) if kind in _DATA))
    warning = ""
    if lost:
        warning = (
            f"\nThat deletes {' and '.join(lost)} for good. Left alone, this stack keeps them and costs almost nothing."
        )
    each = "\n".join(f"  {address}: protected until {lifting}" for address, lifting in refused.items())
    return (
        f"Protected: Terraform refused before it touched this stack.\n{each}\n"
        f"If you mean to destroy it:  {max(refused.values(), key=len)} tpuenv destroy{warning}\n"
        f"If this was a deploy, {_CHANGED}: put it back."
    )


def _imported(flat: str) -> str | None:
    """The provider's own protection, which no stack uses: an import writes it into the state."""
    if "Cannot destroy cluster because deletion_protection is set to true" not in flat:
        return None
    return (
        "Imported: the state says that Google's provider must not delete the cluster, as after `tpuenv recover`. A "
        "deploy puts that right, then destroy again:\n"
        "  DELETION_PROTECTION=false tpuenv deploy cluster"
    )


def _locked(text: str) -> list[str]:
    """A lock is told by a block of its own, in whichever error it stood in the way."""
    found = {}
    for after in text.split("Lock Info:")[1:]:
        block = re.split(r"\n\s*\n", after, maxsplit=1)[0]
        info = dict(re.findall(r"^\s*(\w+):[ \t]*(.*?)\s*$", block, re.MULTILINE))
        if "ID" in info:
            found[info["ID"]] = info
    return [_lock(info) for info in found.values()]


def _lock(info: dict[str, str]) -> str:
    in_bucket = re.fullmatch(r"gs://.*/([a-z0-9-]+)/[^/]*\.tflock", info.get("Path", ""))
    stack = in_bucket[1] if in_bucket else "STACK"
    who, created = info.get("Who") or "somebody", info.get("Created") or "an unknown time"
    return (
        f"Locked: the state of {stack} is held by {who} since {created}.\n"
        "If that run is still going, wait for it. If it was killed, make sure with its owner that it is gone; then:\n"
        "  tpuenv recover\n"
        f"or, for this lock alone:  terraform -chdir=cdktf.out/stacks/{stack} force-unlock {info['ID']}"
    )


def _stale(flat: str) -> str | None:
    if "Saved plan is stale" not in flat:
        return None
    return (
        "Stale: somebody changed this stack's state after it was planned, so nothing of that plan was applied. Find "
        "out who deploys besides this run, then run this again: it plans anew."
    )


def _no_bucket(flat: str) -> str | None:
    if "storage: bucket doesn't exist" not in flat:
        return None
    return (
        "No state bucket: the bucket that Terraform keeps its state in is not there. If there was one, Google gives it "
        "back for some days, with all states, as long as there is no new one of its name:\n"
        "  gcloud storage buckets list --soft-deleted\n"
        "  gcloud storage restore gs://BUCKET#GENERATION\n"
        "Only for a project that never had one, an administrator makes it:\n  tpuenv bootstrap"
    )


def _killed(flat: str) -> str | None:
    """A shell's and cdktf's way to tell of signal 9."""
    return KILLED if re.search(r"Terraform CLI failed with exit code 137\b", flat) else None


def _damaged(flat: str) -> str | None:
    if not re.search(r"Unsupported state file format|in state: State contains", flat):
        return None
    return (
        "Damaged: Terraform cannot read the state. The bucket keeps older versions; this puts the last whole one "
        "back:\n  tpuenv recover"
    )


def _api_off(flat: str) -> str | None:
    """https://cloud.google.com/service-usage/docs/troubleshooting"""
    named = re.findall(r"Error 403: (.{3,60}?) has not been used in project \S+ before or it is disabled", flat)
    if not named and not re.search(r"\b(SERVICE_DISABLED|accessNotConfigured)\b", flat):
        return None
    which = ", ".join(dict.fromkeys(named)) or "one that this environment uses"
    return (
        f"Google API not enabled: {which}. An administrator enables all of them, once per project:\n  tpuenv bootstrap"
    )


def no_login(terraform_output: str) -> bool:
    """Whether Terraform failed because Google does not know, or no longer knows, who asks."""
    flat = " ".join(_plain(terraform_output).split())
    signs = (
        "could not find default credentials",
        "Attempted to load application default credentials",
        "invalid_grant",
        "reauth related error",
    )
    return any(sign in flat for sign in signs)


def _no_credentials(flat: str) -> str | None:
    if not no_login(flat):
        return None
    return "Google does not know who you are, or no longer:\n  gcloud auth application-default login"


def _expired(flat: str) -> str | None:
    """The API server's 401, in its own words and in those of client-go.

    https://cloud.google.com/docs/authentication/token-types#access-tokens
    """
    if not re.search(r"Error: Unauthorized\b|the server has asked for the client to provide credentials", flat):
        return None
    return (
        "Expired: the cluster no longer takes the token that this run got when it planned. It lives an hour at most, "
        "and a plan that waits for an answer outlives it. What was made is in the state; run this again, and answer "
        "sooner.\n"
        "Where gke-gcloud-auth-plugin is installed, this gets a new token whenever one is needed:\n"
        "  GKE_AUTH_PLUGIN=true tpuenv deploy\n"
        "If it comes back at once, the account may not connect to the cluster (container.clusters.connect)."
    )


def _no_plugin(flat: str) -> str | None:
    if "executable gke-gcloud-auth-plugin not found" not in flat:
        return None
    return (
        "GKE_AUTH_PLUGIN is true, and there is no gke-gcloud-auth-plugin on the PATH. Install it, or set it to false:\n"
        "  gcloud components install gke-gcloud-auth-plugin"
    )


def _not_empty(flat: str) -> str | None:
    """The provider deletes a bucket with objects only if the state says so, and only a deploy writes that there."""
    refused = re.findall(r"Error trying to delete bucket (\S+)[^`]*without `force_destroy` set to true", flat)
    if not refused:
        return None
    return (
        f"Not empty: {', '.join(dict.fromkeys(refused))}. Nothing in it was deleted.\n"
        "If the whole environment goes, with its data:\n"
        "  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv deploy foundation\n"
        "  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy\n"
        "If one team goes: copy away what you need of its bucket, empty the bucket, and deploy again."
    )


def _in_use(flat: str) -> str | None:
    """Google neither deletes nor replaces what something else refers to."""
    found = dict.fromkeys(re.findall(r"'([^' ]+)' is already being used by '([^' ]+)'", flat))
    if not found:
        return None
    lines = [f"In use: {used} is used by {user}. Google left it as it is." for used, user in found]
    return "\n".join(
        [
            *lines,
            f"If this was a deploy, {_CHANGED}: put it back.",
            "If this was a destroy, destroy what uses it first: `tpuenv destroy` without a name of a stack keeps the "
            "order, and what was made by hand goes by hand.",
        ]
    )


def _other_slice(flat: str) -> str | None:
    """Only where the shape of a group is new in the state are its pools not replaced with it: docs/changes.md."""
    words = (
        r"is not a valid size of TPU pod slice|Machine type of a TPU node pool cannot be updated|in the gang mode of"
    )
    if "Error updating NodePool" not in flat or not re.search(words, flat):
        return None
    pools = dict.fromkeys(re.findall(r"with (google_container_node_pool\.[\w-]+)", flat)) or {"ADDRESS": None}
    replace = " ".join(f"-replace={pool}" for pool in pools)
    return (
        "Another slice: Google cannot make it of a node pool that exists, and left the pool as it was. This replaces "
        "it, and stops what runs on it:\n"
        f"  terraform -chdir=cdktf.out/stacks/tpu-node-pools apply {replace}"
    )


def _exists(flat: str) -> str | None:
    """Google's 409 in its services' several words, and Kubernetes' own."""
    refused = re.findall(
        r"(?:Error 409:|Cannot create resource that)(?:(?!Error).){0,300}?already (?:exists|own it)"
        r"(?:(?:(?!Error:).){0,300}?\bwith ([a-z_]+\.[\w-]+))?",
        flat,
    )
    if not refused:
        return None
    which = ", ".join(dict.fromkeys(address for address in refused if address)) or "a resource"
    return (
        f"Exists already: {which} is there but not in the state, as after a deploy that was killed. This finds and "
        "imports it:\n  tpuenv recover"
    )


def _gate_closed(flat: str) -> str | None:
    if not re.search(r"failed post-(install|upgrade): .{0,80}?job gate failed", flat):
        return None
    return (
        "The webhooks of Kueue or JobSet do not answer. The gate says what it tried, and what to look at:\n"
        "  kubectl logs -n kueue-system job/gate\n"
        "Deploy again when that is mended."
    )


def _not_drained(flat: str) -> list[str]:
    failed = re.findall(r"failed pre-delete: .{0,80}?job (drain|evict)-(\S+) failed", flat)
    return [
        f"Not drained: ClusterQueue {queue} still has jobs, or Kueue does not answer. Nothing was deleted; the job "
        "says which:\n"
        f"  kubectl logs -n kueue-system job/{release}-{queue}\n"
        f"  kubectl get workloads -n {queue}\n"
        "End what does not stop, and do the same again; or deploy with the team, which opens the queue again."
        for release, queue in dict.fromkeys(failed)
    ]
