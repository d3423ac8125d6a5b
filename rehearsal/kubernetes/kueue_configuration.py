"""Kueue's configuration file: what its manager does not start with, and defaults that it takes.

Source: apis/config/v1beta2 of kubernetes-sigs/kueue 0.19.2: configuration_types.go, read with strict decoding, and
defaults.go.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

API_VERSION = "config.kueue.x-k8s.io/v1beta2"

# Of each section the keys; None where the section is not checked.
_SECTIONS: dict[str, str | None] = {
    "apiVersion": None,
    "kind": None,
    "namespace": None,
    "webhook": "port host certDir",
    "leaderElection": None,
    "metrics": "bindAddress enableClusterQueueResources customLabels localQueueMetrics",
    "health": "healthProbeBindAddress readinessEndpointName livenessEndpointName",
    "pprofBindAddress": None,
    "controller": "groupKindConcurrency cacheSyncTimeout",
    "tls": "minVersion cipherSuites curvePreferences",
    "manageJobsWithoutQueueName": None,
    "managedJobsNamespaceSelector": "matchLabels matchExpressions",
    "internalCertManagement": "enable webhookServiceName webhookSecretName",
    "waitForPodsReady": "timeout blockAdmission requeuingStrategy recoveryTimeout",
    "clientConnection": "qps burst",
    "integrations": "frameworks externalFrameworks labelKeysToCopy",
    "multiKueue": None,
    "fairSharing": "preemptionStrategies",
    "admissionFairSharing": "usageHalfLifeTime usageSamplingInterval resourceWeights",
    "resources": "quotaCheckStrategy excludeResourcePrefixes transformations deviceClassMappings",
    "featureGates": None,
    "objectRetentionPolicies": "workloads",
    "visibilityServer": "bindAddress bindPort",
}
_DURATIONS = ("timeout", "recoveryTimeout")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_REQUIRED = {"waitForPodsReady": "timeout", "fairSharing": "preemptionStrategies"}


def problem(text: str) -> str:
    """Why Kueue would not start with this configuration, or ""."""
    try:
        config: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return f"could not read the configuration: {' '.join(str(error).split())}"
    if not isinstance(config, dict) or (config.get("apiVersion"), config.get("kind")) != (API_VERSION, "Configuration"):
        return f"the configuration is not a {API_VERSION} Configuration"
    for name, section in config.items():
        if name not in _SECTIONS:
            return f'strict decoding error: unknown field "{name}"'
        known = _SECTIONS[name]
        if known is None or not isinstance(section, dict):
            continue
        for key in section:
            if key not in known.split():
                return f'strict decoding error: unknown field "{name}.{key}"'
        if name in _REQUIRED and not section.get(_REQUIRED[name]):
            return f"{name}.{_REQUIRED[name]}: Required value"
    for key in _DURATIONS:
        given = (config.get("waitForPodsReady") or {}).get(key, "0s")
        if _seconds(given) is None:
            return f'time: invalid duration "{given}"'
    return ""


def recovery_seconds(text: str) -> float:
    """How long a job that was running and lost a pod keeps its place while no new one is ready: infinity without limit.

    recoveryTimeout takes the value of timeout where it is not set, and 0 switches it off.
    """
    waiting = (yaml.safe_load(text) or {}).get("waitForPodsReady") or {}
    given = waiting.get("recoveryTimeout", waiting.get("timeout"))
    return _seconds(given) or math.inf


def _seconds(duration: object) -> float | None:
    """A duration as Go writes it: "1h30m"; None for what is none."""
    text = str(duration)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|us|ns|h|m|s)", text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
