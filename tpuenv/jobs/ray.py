"""How a RayJob ended, by what KubeRay writes.

KubeRay 1.7.0, ray-operator/apis/ray/v1/rayjob_types.go and controllers/ray/rayjob_controller.go:

| jobDeploymentStatus | jobStatus | the job |
|---|---|---|
| (none), Initializing, Waiting, Running | any | goes on: its Ray cluster starts, or its program runs |
| Retrying | (none) | goes on, with a new Ray cluster |
| Suspending, Suspended | any | waits: Kueue has taken its slices back |
| Complete | SUCCEEDED | succeeded |
| Complete | STOPPED | failed: somebody stopped it in Ray |
| Failed | any | failed: the program, its submission, or a time limit; the reason says which |
| ValidationFailed | any | failed: KubeRay does not start it, and Kueue keeps its slices until it is deleted |
"""

from __future__ import annotations

from tpuenv.kubernetes.objects import Object, status_of

_INVALID = "ValidationFailed"


def success(ray_job: Object) -> bool | None:
    """Whether it succeeded; None while it has not ended."""
    status = status_of(ray_job)
    deployment = status.get("jobDeploymentStatus")
    if deployment in ("Failed", _INVALID):
        return False
    return status.get("jobStatus") == "SUCCEEDED" if deployment == "Complete" else None


def runs(ray_job: Object) -> bool:
    """Whether its program was submitted to its Ray cluster, whose pods are then all ready."""
    return status_of(ray_job).get("jobDeploymentStatus") == "Running"


def end_message(ray_job: Object) -> str:
    """Why it failed, in KubeRay's words; "" where it says nothing."""
    status = status_of(ray_job)
    said = str(status.get("message") or status.get("reason") or "")
    if status.get("jobDeploymentStatus") == _INVALID:
        return f"{said}; it keeps its slices until `tpuenv cancel` deletes it"
    return said or ("it was stopped in Ray" if status.get("jobStatus") == "STOPPED" else "")
