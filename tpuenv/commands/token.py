"""`tpuenv token`: the credential plugin by which Terraform's providers, and kubectl, reach the cluster."""

from __future__ import annotations

import json
from datetime import timezone

from tpuenv.commands.command import command


@command(
    summary="print a token for the cluster, for Terraform's providers and kubectl",
    examples=("tpuenv token >/dev/null    whether this machine's login can get one",),
    notes="""\
In a kubeconfig it takes the place of gke-gcloud-auth-plugin: `exec: {apiVersion: client.authentication.k8s.io/v1,
command: tpuenv, args: [token], interactiveMode: Never}`. Exit codes: 0 done, 1 no login.
""",
)
def token() -> int:
    """Prints a token of this machine's login for Google as an ExecCredential of Kubernetes. It is valid for an hour at
    most, and nothing keeps it: the providers ask again when they need one. No settings are read.
    """
    # https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
    from tpuenv.google.token import access_token

    value, expiry = access_token()
    status = {"token": value}
    if expiry:
        status["expirationTimestamp"] = expiry.replace(tzinfo=timezone.utc).isoformat().replace("+00:00", "Z")
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
    return 0
