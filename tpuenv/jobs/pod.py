"""A pod of a job, as the API server has it."""

from __future__ import annotations

from dataclasses import dataclass

from tpuenv.kubernetes.objects import Object, condition_of, status_of
from vocabulary.keys import (
    COMPLETION_INDEX_LABEL,
    JOB_INDEX_LABEL,
    RAY_ADDON_REPLICA_LABEL,
    RAY_GROUP_LABEL,
    RAY_HOST_LABEL,
    RAY_NODE_TYPE_LABEL,
    RAY_ORIGIN_LABEL,
    RAY_REPLICA_LABEL,
    REPLICATED_JOB_LABEL,
    TPU,
    TPU_HOST_VARIABLE,
)

# The parts of a RayJob or RayCluster beside its worker groups.
HEAD = "head"
SUBMITTER = "submitter"


@dataclass(frozen=True, kw_only=True)
class Pod:
    """One pod of a job. `slice` counts the slices of the job from 0, and `host` the hosts of the slice."""

    body: Object

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"].get("uid") or "")

    @property
    def created(self) -> str:
        """The time as the API server writes it, in order as text."""
        return str(self.body["metadata"].get("creationTimestamp") or "")

    @property
    def deleted(self) -> str:
        """By when it is to have ended, once it is being deleted; "" before."""
        return str(self.body["metadata"].get("deletionTimestamp") or "")

    @property
    def node(self) -> str:
        """The node that it was given; "" if none."""
        return str((self.body.get("spec") or {}).get("nodeName") or "")

    @property
    def part(self) -> str:
        """The name of the replicated job of a JobSet, or of the worker group of a RayCluster."""
        return self._beside or self._label(REPLICATED_JOB_LABEL) or self._label(RAY_GROUP_LABEL)

    @property
    def is_beside(self) -> bool:
        """Whether it is the head or the submitter of a RayJob or RayCluster, and no host."""
        return bool(self._beside)

    @property
    def slice(self) -> int:
        replica = self._label(RAY_ADDON_REPLICA_LABEL).rpartition("-")[2]
        return _number(self._label(JOB_INDEX_LABEL) or self._label(RAY_REPLICA_LABEL) or replica)

    @property
    def host(self) -> int:
        host = self._label(COMPLETION_INDEX_LABEL) or self._label(RAY_HOST_LABEL)
        return _number(host or self._variable(TPU_HOST_VARIABLE))

    @property
    def phase(self) -> str:
        return str(status_of(self.body).get("phase") or "Pending")

    @property
    def ready(self) -> bool:
        """Whether all of its containers run, so that the program has begun."""
        return self.phase == "Running" and not any("waiting" in state for _, state in self.containers)

    @property
    def started(self) -> bool:
        """Whether its containers run or have ended: there is a log."""
        return self.ready or self.phase in ("Succeeded", "Failed")

    @property
    def has_chips(self) -> bool:
        return has_chips(self.body.get("spec") or {})

    @property
    def containers(self) -> list[tuple[Object, Object]]:
        """The status of each container, and its state: {"waiting": {"reason": ...}}."""
        keys = ("initContainerStatuses", "containerStatuses")
        return [(item, item.get("state") or {}) for key in keys for item in status_of(self.body).get(key) or []]

    @property
    def container(self) -> str:
        """The container whose log is the program's: that with the chips, or the first."""
        containers = (self.body.get("spec") or {}).get("containers") or [{}]
        program = next((item for item in containers if has_chips({"containers": [item]})), containers[0])
        return str(program.get("name") or "")

    @property
    def unschedulable(self) -> str:
        """Why no node takes it, in the scheduler's words; "" if one has."""
        condition = condition_of(self.body, "PodScheduled")
        if condition.get("status") != "False":
            return ""
        return str(condition.get("message") or condition.get("reason") or "no node takes it")

    @property
    def place(self) -> str:
        """ "slice 0, host 2"; of a Job without chips "pod 0"; of a Ray cluster "head"."""
        if self.is_beside:
            return self.part
        if not self.has_chips and not self.part:
            return f"pod {self.host}"
        part = "" if self.has_chips or not self.part else f"part {self.part}, "
        return f"{part}slice {self.slice}, host {self.host}"

    @property
    def _beside(self) -> str:
        """The part that a label of KubeRay's says; other parts may have the same names."""
        if self._label(RAY_NODE_TYPE_LABEL) == HEAD:
            return HEAD
        return SUBMITTER if self._label(RAY_ORIGIN_LABEL) else ""

    def _variable(self, name: str) -> str:
        """The value of an environment variable that a container has; "" where none has it."""
        containers = (self.body.get("spec") or {}).get("containers") or []
        values = (item.get("value") for one in containers for item in one.get("env") or [] if item.get("name") == name)
        return next((str(value) for value in values if value), "")

    def _label(self, key: str) -> str:
        return str((self.body["metadata"].get("labels") or {}).get(key) or "")


def has_chips(pod_spec: Object) -> bool:
    """Whether a container of the pod asks for TPU chips."""
    for container in pod_spec.get("containers") or []:
        resources = container.get("resources") or {}
        if TPU in (resources.get("limits") or {}) or TPU in (resources.get("requests") or {}):
            return True
    return False


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
