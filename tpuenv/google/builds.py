"""Whether a build of Cloud Build still runs."""

from __future__ import annotations

from dataclasses import dataclass

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from vocabulary.printable import shortened

_LONGEST = 300  # characters of an answer that are shown

# https://cloud.google.com/build/docs/api/reference/rest/v1/projects.builds#Build.Status
_RUNNING = ("PENDING", "QUEUED", "WORKING")
_ENDED = ("SUCCESS", "FAILURE", "INTERNAL_ERROR", "TIMEOUT", "CANCELLED", "EXPIRED")


@dataclass(frozen=True, kw_only=True)
class BuildStatus:
    """A build and its status, in Cloud Build's words; "" where there is no build, or nothing is known of it."""

    id_: str = ""
    status: str = ""

    @property
    def running(self) -> bool:
        """Whether it runs, or waits to."""
        return self.status in _RUNNING

    @property
    def ended(self) -> bool:
        return self.status in _ENDED


NO_BUILD = BuildStatus()


def read_build(clients: Clients, id_: str, *, region: str) -> BuildStatus:
    """What Cloud Build says of a build. Raises Failed when it does not know it, or refuses to answer.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.builds/get
    """
    name = f"projects/{clients.project_id}/locations/{region}/builds/{id_}"
    url = f"{clients.api_url('cloudbuild.googleapis.com')}/v1/{name}"
    with clients.asking(f"read build {id_}", permission="cloudbuild.builds.get", role="roles/cloudbuild.builds.viewer"):
        response = clients.retry(clients.request)("GET", url)
        try:
            status = response.json()["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Failed("Cloud Build's answer is not a build") from error
    return BuildStatus(id_=id_, status=shortened(status, longest=_LONGEST))
