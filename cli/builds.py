"""Whether a build of Cloud Build still runs."""

from __future__ import annotations

from dataclasses import dataclass

from google.api_core import exceptions

from cli.cloud import Clients

# https://cloud.google.com/build/docs/api/reference/rest/v1/projects.builds#Build.Status
_BEFORE_THE_END = ("PENDING", "QUEUED", "WORKING")
_ENDED = ("SUCCESS", "FAILURE", "INTERNAL_ERROR", "TIMEOUT", "CANCELLED", "EXPIRED")


@dataclass(frozen=True, kw_only=True)
class Known:
    """A build and its status, in Cloud Build's words; "" is no build, or one of which nothing is known."""

    id_: str = ""
    status: str = ""

    @property
    def at_work(self) -> bool:
        return self.status in _BEFORE_THE_END

    @property
    def over(self) -> bool:
        return self.status in _ENDED

    def __str__(self) -> str:
        return self.status


NONE = Known()


def known(clients: Clients, id_: str, *, region: str) -> Known:
    """What Cloud Build says of a build. Raises Failed when it does not know it, or may not be asked.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.builds/get
    """
    name = f"projects/{clients.project_id}/locations/{region}/builds/{id_}"
    url = f"{clients.api_url('cloudbuild.googleapis.com')}/v1/{name}"
    with clients.asking(f"read build {id_}", permission="cloudbuild.builds.get", role="roles/cloudbuild.builds.viewer"):
        answer = clients.session.get(url, timeout=clients.patience.answer)
        if not answer.ok:
            raise exceptions.from_http_response(answer)  # type: ignore[no-untyped-call]
        status = str(answer.json().get("status") or "STATUS_UNKNOWN")
    return Known(id_=id_, status=status)
