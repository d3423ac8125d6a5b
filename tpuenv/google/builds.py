"""Whether a build of Cloud Build still runs."""

from __future__ import annotations

from dataclasses import dataclass

import requests
from google.api_core import exceptions

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from vocabulary.printable import shortened

# https://cloud.google.com/build/docs/api/reference/rest/v1/projects.builds#Build.Status
_BEFORE_THE_END = ("PENDING", "QUEUED", "WORKING")
_LONGEST = 300  # characters of an answer that are shown
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
        answer = clients.retry(_asked)(clients, url)
        try:
            status = answer.json()["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Failed("Cloud Build's answer cannot be understood") from error
    return Known(id_=id_, status=shortened(status, longest=_LONGEST))


def _asked(clients: Clients, url: str) -> requests.Response:
    answer = clients.session.get(url, timeout=clients.patience.answer)
    if not answer.ok:
        try:
            error = exceptions.from_http_response(answer)  # type: ignore[no-untyped-call]
        except (AttributeError, TypeError, RecursionError):  # not an error in Google's form
            said = shortened(answer.text, longest=_LONGEST)
            error = exceptions.from_http_status(answer.status_code, said)  # type: ignore[no-untyped-call]
        raise error
    return answer
