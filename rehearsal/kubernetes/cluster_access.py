"""What an account may do in a cluster: Google's grants for all of its objects, and the cluster's own roles.

https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#iam-interaction
"""

from __future__ import annotations

from rehearsal.cloud import Cloud
from rehearsal.google import permissions
from rehearsal.google.iam import ACCOUNT
from rehearsal.kubernetes import rbac
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.objects import Object
from rehearsal.kubernetes.resources import ALL, Resource
from rehearsal.terraform.resource_type import Refusal

SECRET = next(item for item in ALL if item.kind == "Secret")
CONFIG_MAP = next(item for item in ALL if item.kind == "ConfigMap")


class Authorized(Api):
    """The API server as one account meets it; its own doings (controllers, webhooks) are nobody's."""

    def __init__(self, cloud: Cloud, cluster: str, account: str) -> None:
        super().__init__(cloud, cluster)
        self.account = account
        self._own = Api(cloud, cluster)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        self.authorize("get", resource, namespace, name)
        return self._own.get(resource, namespace, name)

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        self.authorize("list", resource, namespace)
        return self._own.all(resource, namespace)

    def create(self, body: Object, *, dry_run: bool = False) -> Object:
        self._authorize_body("create", body)
        return self._own.create(body, dry_run=dry_run)

    def update(self, body: Object, *, dry_run: bool = False, owner: bool = False) -> Object:
        self._authorize_body("update", body)
        return self._own.update(body, dry_run=dry_run, owner=owner)

    def delete(self, resource: Resource, namespace: str, name: str) -> Object | None:
        self.authorize("delete", resource, namespace, name)
        return self._own.delete(resource, namespace, name)

    def _authorize_body(self, verb: str, body: Object) -> None:
        metadata = body.get("metadata", {})
        resource = self.resource(body.get("apiVersion", ""), body.get("kind", ""))
        self.authorize(verb, resource, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))

    def authorize(
        self, verb: str, resource: Resource, namespace: str, name: str = "", *, subresource: str = ""
    ) -> None:
        """Raises Refusal. https://kubernetes.io/docs/reference/access-authn-authz/authorization/"""
        project = self.cluster.split("/")[1]
        permission = f"container.{resource.plural}.{'getLogs' if subresource == 'log' else verb}"
        plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
        if not permissions.denied(self.cloud, self.account, permission, self.cluster, project=project):
            return
        group = resource.api_version.rpartition("/")[0]
        where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
        for user in self._users():
            if not rbac.allows(
                self._own, verb=verb, group=group, resource=plural, user=user, namespace=namespace, name=name
            ):
                raise Refusal(
                    f'{resource.qualified} "{name}" is forbidden: User "{user}" cannot {verb} resource'
                    f' "{plural}" in API group "{group}"{where}: requires one of ["{permission}"]'
                    " permission(s)."
                )

    def _users(self) -> list[str]:
        """What GKE may know the account by: its email, or its unique id where the token carries no email. Nobody has
        said which Cloud Build's tokens do, so both have to be allowed.

        https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
        """
        stored = self.cloud.get(ACCOUNT, f"projects/{self.cluster.split('/')[1]}/serviceAccounts/{self.account}")
        return [self.account, *([str(stored["unique_id"])] if stored else [])]


def api_of(cloud: Cloud, cluster: str, account: str) -> Api:
    """The API server for the project's administrator, or for an account that may connect.

    https://cloud.google.com/kubernetes-engine/docs/how-to/latest/network-isolation#dns-based-endpoint
    """
    if account == permissions.ADMINISTRATOR:
        return Api(cloud, cluster)
    why = permissions.denied(cloud, account, "container.clusters.connect", cluster, project=cluster.split("/")[1])
    if why:
        raise Refusal(f"the server has asked for the client to provide credentials: {why}")
    return Authorized(cloud, cluster, account)
