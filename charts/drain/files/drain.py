"""Drain a ClusterQueue: hold it, let Kueue stop its jobs, wait until none is admitted, and take its quota back.

Standard library only. Reads VALUES (JSON: clusterQueue, limitSeconds) and, outside a pod, KUBERNETES_API. The jobs are
not lost: they stay, suspended. Exits 0 when the queue is empty or there is none (not yet, not any more, or no Kueue to
have one), 1 when the limit passes; the queue is then still on hold, if Kueue answered at all.

Kueue goes on lending the quota of a queue on hold (0.19.2, pkg/cache/scheduler: a cohort sums up all its queues). A
deploy that renames a team makes the new queue before the old one goes, and both together would give away chips twice.
So the drained queue gets a cohort of its own: with none, limits on borrowing would be refused. Not before it is
drained, or what it has borrowed would look free to the others.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
POLL_SECONDS = 2
REPORT_SECONDS = 10


def connection():
    """Address, headers and TLS of the API server: the pod's own, or KUBERNETES_API."""
    address = os.environ.get("KUBERNETES_API")
    if address:
        return address, {}, None
    with open(f"{ACCOUNT}/token", encoding="ascii") as file:
        token = file.read().strip()
    return "https://kubernetes.default.svc", {"Authorization": f"Bearer {token}"}, f"{ACCOUNT}/ca.crt"


def call(method, queue, body=None):
    """The ClusterQueue as it stands, or None when there is none; OSError when the API server can't answer."""
    address, headers, authority = connection()
    request = urllib.request.Request(
        f"{address}/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}",
        data=json.dumps(body).encode() if body else None,
        headers={"Content-Type": "application/merge-patch+json", **headers},
        method=method,
    )
    tls = ssl.create_default_context(cafile=authority) if authority else None
    try:
        with urllib.request.urlopen(request, timeout=15, context=tls) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise OSError(f"{error.code} {error.read().decode(errors='replace')}") from error


def drained(queue):
    """Whether Kueue has seen the hold, without which its counts may be old, and nothing runs any more."""
    status = queue.get("status", {})
    active = [each["status"] for each in status.get("conditions", []) if each["type"] == "Active"]
    return active == ["False"] and running(queue) == 0


def running(queue):
    status = queue.get("status", {})
    return max(status.get("admittedWorkloads", 0), status.get("reservingWorkloads", 0))


def main():
    values = json.loads(os.environ["VALUES"])
    queue = values["clusterQueue"]
    limit = time.monotonic() + values["limitSeconds"]
    report = 0.0
    held = False
    state = "unknown"
    while time.monotonic() < limit:
        try:
            if not held:
                found = call("PATCH", queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
                held = True
            else:
                found = call("GET", queue)
            empty = found is not None and drained(found)
            if empty:
                found = call("PATCH", queue, {"spec": {"cohortName": f"drained-{queue}"}})
            if found is None:
                print(f"There is no ClusterQueue {queue}: nothing to drain.")
                return 0
            if empty:
                print(f"ClusterQueue {queue} is drained; its jobs stay, suspended.")
                return 0
            state = f"{running(found)} jobs still run or hold quota"
        except OSError as error:
            state = str(error)
        if time.monotonic() >= report:
            print(f"Draining {queue}: {state}", flush=True)
            report = time.monotonic() + REPORT_SECONDS
        time.sleep(POLL_SECONDS if held else 1)
    if held:
        todo = (
            "It is on hold; nothing was deleted. See which jobs do not stop (kubectl get workloads -A), end them,"
            " and run the same again; a deploy that keeps the team resumes its queue."
        )
    else:
        todo = (
            "Kueue did not let it be put on hold; nothing was changed or deleted. While Kueue does not answer, what it"
            " manages can't go: look at it (kubectl get pods -n kueue-system), and run the same again."
        )
    print(f"ClusterQueue {queue} did not drain in {values['limitSeconds']} s: {state}. {todo}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
