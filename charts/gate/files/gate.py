"""Wait until the webhooks of Kueue and JobSet answer, by a dry-run of the objects that will be made for real.

Standard library only. Reads VALUES (JSON: teamNamespace, limitSeconds), RELEASE_NAMESPACE and, outside a pod,
KUBERNETES_API. Exits 0 once every object is accepted in one round, 1 with the last answers when the limit passes or an
answer can't get better.
"""

import contextlib
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CAUSES = """What to look at:
- the pods of Kueue and JobSet: kubectl get pods -n kueue-system; kubectl get pods -n jobset-system
- a control plane that may not call port 9443 on the nodes (older private clusters): set CONTROL_PLANE_CIDR,
  which adds a firewall rule
- a CPU pool without room: raise CPU_MAX_NODES"""


def objects(namespace):
    kueue = "/apis/kueue.x-k8s.io/v1beta2"
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "gate"},
        "spec": {},
    }
    cluster_queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "gate"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "gate", "resources": [{"name": "cpu", "nominalQuota": "1"}]}],
                }
            ]
        },
    }
    local_queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "gate", "namespace": namespace},
        "spec": {"clusterQueue": "gate"},
    }
    # A dry-run pulls nothing; this registry is one that ALLOWED_IMAGES always lets in.
    pod = {"containers": [{"name": "gate", "image": "gke.gcr.io/gate"}], "restartPolicy": "Never"}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "gate", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "gate"}},
        "spec": {"replicatedJobs": [{"name": "gate", "template": {"spec": {"template": {"spec": pod}}}}]},
    }
    return [
        (f"{kueue}/resourceflavors", flavor),
        (f"{kueue}/clusterqueues", cluster_queue),
        (f"{kueue}/namespaces/{namespace}/localqueues", local_queue),
        (f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets", job_set),
    ]


def connection():
    """Address, headers and TLS of the API server: the pod's own, or KUBERNETES_API."""
    address = os.environ.get("KUBERNETES_API")
    if address:
        return address, {}, None
    with open(f"{ACCOUNT}/token", encoding="ascii") as file:
        token = file.read().strip()
    return "https://kubernetes.default.svc", {"Authorization": f"Bearer {token}"}, f"{ACCOUNT}/ca.crt"


def refusal(path, body):
    """Why the API server does not accept the object now, or None; and whether waiting can help."""
    address, headers, authority = connection()
    request = urllib.request.Request(
        f"{address}{path}?dryRun=All&fieldValidation=Strict",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
        method="POST",
    )
    tls = ssl.create_default_context(cafile=authority) if authority else None
    try:
        with urllib.request.urlopen(request, timeout=15, context=tls):
            return None, True
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["message"]
        # 404: the kind is not served yet; 403: the role is seconds old; 429: too many calls; 5xx: no webhook answered.
        return f"{error.code} {text}", error.code in (403, 404, 408, 429) or error.code >= 500
    except OSError as error:
        return str(error), True


def main():
    values = json.loads(os.environ["VALUES"])
    limit = time.monotonic() + values["limitSeconds"]
    pause = 0.2
    while True:
        waiting = False
        refused = []
        for path, body in objects(values["teamNamespace"]):
            reason, may_pass = refusal(path, body)
            if reason:
                refused.append(f"{body['kind']}: {reason}")
                waiting = waiting or may_pass
        if not refused:
            print("The webhooks of Kueue and JobSet answer.")
            return 0
        print("Not yet:", "; ".join(refused), flush=True)
        if not waiting or time.monotonic() + pause > limit:
            print(f"The webhooks of Kueue or JobSet do not answer.\n{CAUSES}")
            return 1
        time.sleep(pause)
        pause = min(pause * 2, 15)


if __name__ == "__main__":
    sys.exit(main())
