"""Dashboards and alerts in Cloud Monitoring, and the collection of Kueue's metrics for them."""

from __future__ import annotations

import json

from cdktf import Fn, TerraformResourceLifecycle
from cdktf_cdktf_provider_google.monitoring_alert_policy import (
    MonitoringAlertPolicy,
    MonitoringAlertPolicyConditions,
    MonitoringAlertPolicyConditionsConditionPrometheusQueryLanguage,
    MonitoringAlertPolicyDocumentation,
)
from cdktf_cdktf_provider_google.monitoring_dashboard import MonitoringDashboard
from cdktf_cdktf_provider_google.monitoring_notification_channel import MonitoringNotificationChannel
from constructs import Construct

from environment import Environment
from environment.names import KUEUE_NAMESPACE
from stacks.access import NAME, subject_of
from stacks.alerts import Alert, alerts
from stacks.base import ClusterUser
from stacks.charts import LocalChart
from stacks.controllers import COLLECTORS, COLLECTORS_OF_AUTOPILOT
from stacks.dashboards import dashboards
from stacks.owned import owned
from stacks.queries import collected
from stacks.rbac import grant_in_namespace
from vocabulary.keys import LINKS

CONSOLE = "https://console.cloud.google.com/monitoring"

INSTALL_LIMIT_SECONDS = 300


class Observability(ClusterUser):
    """Nothing depends on it: jobs run the same without it. GKE collects its own metrics and those of JobSets itself."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        settings = environment.settings
        LocalChart(
            self,
            "metrics",
            environment=environment,
            chart="metrics",
            namespace=KUEUE_NAMESPACE,
            values={
                "collectorNamespace": COLLECTORS_OF_AUTOPILOT if settings.autopilot else COLLECTORS,
                "keep": collected(),
            },
            timeout_seconds=INSTALL_LIMIT_SECONDS,
            depends_on=(),
        )
        links = {}
        for name, content in dashboards(environment).items():
            dashboard = MonitoringDashboard(self, f"dashboard-{name}", dashboard_json=_normalized(content))
            # The server gives the id.
            links[name] = f"{CONSOLE}/dashboards/builder/{Fn.basename(dashboard.id)}?project={settings.project_id}"
            self.output(
                f"dashboard_{name.lower().replace('-', '_')}", links[name], f"The dashboard '{content['displayName']}'"
            )
        self._show({**links, "alerts": f"{CONSOLE}/alerting?project={settings.project_id}"})
        # Below the stack itself, cdktf leaves special characters out of ids: a.b@x and ab@x would be one channel.
        emails = Construct(self, "email")
        channels = [
            MonitoringNotificationChannel(
                emails,
                address,
                display_name=f"{environment.names.prefix}: {address}",
                type="email",
                labels={"email_address": address},
                # Google keeps a channel for as long as a policy names it: the policies are updated first.
                lifecycle=TerraformResourceLifecycle(create_before_destroy=True),
            ).name
            for address in settings.alert_emails
        ]
        for alert in alerts(environment):
            self._policy(alert, channels)

    def _show(self, links: dict[str, str]) -> None:
        """Where `tpuenv status` and `submit` find the links: they read the cluster anyway, and people who may use it
        need no access to Terraform's state.
        """
        metadata = {"name": LINKS, "namespace": KUEUE_NAMESPACE}
        owned(self, "links", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": links})
        members = dict.fromkeys(member for team in self.environment.teams for member in team.members)
        if members:
            grant_in_namespace(
                self,
                ("link-reader", "link-readers"),
                name=NAME,
                namespace=KUEUE_NAMESPACE,
                rules=[([""], ["configmaps"], ["get"])],
                subjects=map(subject_of, members),
                only=[LINKS],
            )

    def _policy(self, alert: Alert, channels: list[str]) -> None:
        condition = MonitoringAlertPolicyConditionsConditionPrometheusQueryLanguage(
            query=alert.query,
            duration=f"{alert.minutes * 60}s",
            evaluation_interval="60s",
            # A metric exists in a project from its first value on, and the API refuses a query of one that does not.
            disable_metric_validation=True,
        )
        MonitoringAlertPolicy(
            self,
            f"alert-{alert.id_}",
            display_name=f"{self.environment.names.prefix}: {alert.title}",
            combiner="OR",
            conditions=[
                MonitoringAlertPolicyConditions(display_name=alert.title, condition_prometheus_query_language=condition)
            ],
            documentation=MonitoringAlertPolicyDocumentation(content=alert.help, mime_type="text/markdown"),
            notification_channels=channels or None,
        )


def _normalized(content: object) -> str:
    """JSON as the provider keeps it in the state, so that a plan shows what has changed and nothing else.

    https://github.com/hashicorp/terraform-provider-google/blob/v6.50.0/google/services/monitoring/resource_monitoring_dashboard.go
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
