"""The keys of Kueue's configuration file: its manager does not start with one that it does not know.

Source: apis/config/v1beta2/configuration_types.go of kubernetes-sigs/kueue 0.19.2, read with strict decoding.
"""

from __future__ import annotations

from typing import Any

import yaml

API_VERSION = "config.kueue.x-k8s.io/v1beta2"

# Of each section the keys; None where the section is not looked into.
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
    return ""
