"""Google's own clients for one project, and every refusal of Google's explained with one thing to do."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tpuenv.failure import Failed
from tpuenv.google import endpoints
from vocabulary.printable import shortened

with warnings.catch_warnings():
    # Google's libraries announce on import that they will stop supporting older Pythons; not this command's business.
    warnings.simplefilter("ignore", FutureWarning)
    import google.auth
    import google.auth.credentials
    import requests
    from google.api_core import exceptions
    from google.api_core.retry import Retry, if_exception_type
    from google.auth.credentials import CredentialsWithQuotaProject
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError, TransportError
    from google.auth.external_account_authorized_user import Credentials as FederatedPerson
    from google.auth.transport.requests import AuthorizedSession
    from google.cloud.storage import Client as StorageClient
    from google.oauth2.credentials import Credentials as Person

if TYPE_CHECKING:
    from google.cloud.service_usage_v1 import ServiceUsageClient

_TRANSIENT = if_exception_type(
    exceptions.TooManyRequests,
    exceptions.ServerError,
    requests.exceptions.ConnectionError,
    requests.exceptions.Timeout,
    requests.exceptions.ChunkedEncodingError,
    TransportError,
)

_LONGEST = 300  # characters of an answer that are shown

LOG_IN = "gcloud auth application-default login"
LOG_IN_AGAIN = f"run `{LOG_IN}`, then this again"

# All that a request to Google may raise.
GOOGLE_ERRORS = (exceptions.GoogleAPIError, GoogleAuthError, requests.exceptions.RequestException)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait, in seconds.

    answer  for one answer
    again   in all, while requests are repeated after transient faults
    poll    between two tries
    change  for a change to take effect
    line    between two lines that say what is waited for
    quiet   for the next line of a log that is followed, before it is checked what became of the job
    """

    answer: float = 30
    again: float = 30
    poll: float = 3
    change: float = 600
    line: float = 15
    quiet: float = 60


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The clients for `project_id`. `principal` is the account, "" where the credentials do not name it.

    `api_url` is the endpoint of a service, by its host name.
    """

    project_id: str
    principal: str
    services: Callable[[], ServiceUsageClient]
    storage: StorageClient
    session: AuthorizedSession
    say: Callable[[str], None]
    patience: Patience = field(default_factory=Patience)
    api_url: Callable[[str], str] = endpoints.url

    @property
    def retry(self) -> Retry:
        """Repeats requests after transient faults: 429, 5xx, a lost connection."""
        return Retry(
            predicate=_TRANSIENT,
            initial=self.patience.poll / 3,
            maximum=10,
            timeout=self.patience.again,
            on_error=lambda error: notice(f"  no good answer yet ({brief(error)}); trying again"),
        )

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        """The response to one request to a REST API. Raises Google's error, for `asking` to explain, if it is one."""
        response: requests.Response = self.session.request(  # type: ignore[no-untyped-call]
            method, url, timeout=self.patience.answer, **options
        )
        if not response.ok:
            try:
                error = exceptions.from_http_response(response)  # type: ignore[no-untyped-call]
            except (AttributeError, TypeError, RecursionError):  # not an error in Google's form
                text = shortened(response.text, longest=_LONGEST)
                error = exceptions.from_http_status(response.status_code, text)  # type: ignore[no-untyped-call]
            raise error
        return response

    @contextmanager
    def asking(self, what: str, *, permission: str, role: str) -> Iterator[None]:
        """Raises Failed for every error of Google's inside. `permission` is what Google checks, `role` has it."""
        try:
            yield
        except GOOGLE_ERRORS as error:
            raise Failed(self._explained(cause_of(error), what, permission, role)) from error

    def wait(self, what: str, remaining: Callable[[], Sequence[str]]) -> None:
        """Polls until nothing remains, and prints at times what still does. Raises Failed when it takes too long."""
        began = last_line = time.monotonic()
        while names := remaining():
            now = time.monotonic()
            if now - began > self.patience.change:
                raise Failed(
                    f"APIs: after {now - began:.0f} s Google still has not {what} {', '.join(names)}; wait a few "
                    "minutes and run this again: what is done stays done"
                )
            if now - last_line >= self.patience.line:
                last_line = now
                self.say(f"  {now - began:.0f} s: not yet {what}: {', '.join(names)}")
            time.sleep(self.patience.poll)

    def _explained(self, error: Exception, what: str, permission: str, role: str) -> str:
        if isinstance(error, exceptions.GoogleAPICallError):
            return self._refusal(error, what, permission, role)
        if isinstance(error, TransportError | requests.exceptions.RequestException):
            return (
                f"network: no answer within {self.patience.again:.0f} s: {brief(error)}; check the connection and "
                "HTTPS_PROXY, then run this again"
            )
        return f"credentials: Google does not accept yours ({brief(error)}); {LOG_IN_AGAIN}"

    def _refusal(self, error: exceptions.GoogleAPICallError, what: str, permission: str, role: str) -> str:
        message, reasons = message_of(error), _reasons(error)
        if error.code == 401:
            return f"credentials: Google does not accept yours ({message}); {LOG_IN_AGAIN}"
        if "billing" in message.lower() or any("BILLING" in reason.upper() for reason in reasons):
            return (
                f"PROJECT_ID: '{self.project_id}' has no open billing account, and the APIs need one; link one at "
                f"https://console.cloud.google.com/billing/linkedaccount?project={self.project_id} and run this again"
            )
        if reasons & {"USER_PROJECT_DENIED", "CONSUMER_INVALID", "RESOURCES_NOT_FOUND"} or _NO_PROJECT.search(message):
            return (
                f"PROJECT_ID: '{self.project_id}' does not exist, or {self.principal or 'your account'} may not use "
                "it; `gcloud projects list` shows yours, and an administrator of the project grants "
                f"roles/serviceusage.serviceUsageAdmin and roles/storage.admin. Google says: {message}"
            )
        if is_switched_off(error):
            host = re.search(r"[a-z]+\.googleapis\.com", message)
            service = (error.metadata or {}).get("service") or (host[0] if host else "serviceusage.googleapis.com")
            return (
                f"APIs: {service} is switched off in project '{self.project_id}', and without it the others cannot be "
                f"switched on; run `gcloud services enable {service} --project={self.project_id}`, then this again"
            )
        if error.code == 403:
            who = self.principal or _principal_in(message)
            return (
                f"permission: {who or 'your account'} may not {what} in project '{self.project_id}': it needs "
                f"{permission}. An administrator grants it with\n"
                f"  gcloud projects add-iam-policy-binding {self.project_id} --member={member(who)} --role={role}\n"
                f"Google says: {message}"
            )
        recover = "; `tpuenv recover` says how to restore it" if "bucket does not exist" in message else ""
        return f"Google would not {what} in project '{self.project_id}': {error.code or 'error'}: {message}{recover}"


# https://cloud.google.com/service-usage/docs/troubleshooting; of a deleted project there is only a message.
_NO_PROJECT = re.compile(r"project\b.*(not found|has been deleted|does not exist)|unknown project", re.IGNORECASE)


def connect(project_id: str) -> Clients:
    """The real clients, with the credentials of this machine. Raises Failed when there are none."""
    login = credentials(project_id)
    principal = getattr(login, "service_account_email", "") or getattr(login, "account", "")
    return Clients(
        project_id=project_id,
        principal=principal if "@" in principal else "",
        services=lambda: _service_usage(login),
        storage=StorageClient(project=project_id, credentials=login, client_options=endpoints.storage()),
        session=AuthorizedSession(login),  # type: ignore[no-untyped-call]
        say=_say,
    )


def _service_usage(login: google.auth.credentials.Credentials) -> ServiceUsageClient:
    """Its library is imported by the few that ask it: the import takes a fifth of the start of a command."""
    from google.cloud.service_usage_v1 import ServiceUsageClient
    from google.cloud.service_usage_v1.services.service_usage.transports import ServiceUsageRestTransport

    return ServiceUsageClient(transport=ServiceUsageRestTransport(credentials=login))


def connect_without_quota_project(project_id: str) -> Clients:
    """As `connect`, for requests about what is in the project. Google counts them there by itself; naming the project
    would take serviceusage.services.use, which the members of teams do not have. Raises Failed.

    https://cloud.google.com/docs/quotas/quota-project#project-client-based
    """
    clients = connect(project_id)
    login = clients.session.credentials
    if isinstance(login, CredentialsWithQuotaProject):
        login = login.with_quota_project(None)  # type: ignore[no-untyped-call]
    return replace(clients, session=AuthorizedSession(login))  # type: ignore[no-untyped-call]


def credentials(project_id: str) -> google.auth.credentials.Credentials:
    """The credentials of this machine; an access token comes first, as in Terraform's Google provider and its backend.

    Requests of a person name the project as their quota project, so that its enabled APIs count. Those of a service
    account count there anyway, and naming it takes serviceusage.services.use, which the accounts of builds do not have.
    Of an access token nobody knows whose it is. Raises Failed where there are none.
    https://cloud.google.com/docs/quotas/set-quota-project
    """
    quota_project = os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT") or None
    if token := os.environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return Person(token, quota_project_id=quota_project)  # type: ignore[no-untyped-call]
    try:
        login: google.auth.credentials.Credentials
        login, _ = google.auth.default(
            scopes=["https://www.googleapis.com/auth/cloud-platform"], quota_project_id=quota_project or project_id
        )
    except (DefaultCredentialsError, RefreshError) as error:
        raise Failed(f"credentials: none that can be used on this machine ({brief(error)}); {LOG_IN_AGAIN}") from error
    if not isinstance(login, Person | FederatedPerson) and isinstance(login, CredentialsWithQuotaProject):
        login = login.with_quota_project(quota_project)  # type: ignore[no-untyped-call]
    return login


def _say(line: str) -> None:
    print(line, flush=True)


def notice(line: str) -> None:
    """A line on standard error: the output of a command with --json is JSON alone."""
    print(line, file=sys.stderr, flush=True)


def cause_of(error: Exception) -> Exception:
    """Of an error after several tries, that of the last one."""
    return error.cause if isinstance(error, exceptions.RetryError) and error.cause else error


def message_of(error: exceptions.GoogleAPICallError) -> str:
    """Google's message, without the request that the libraries put before it."""
    return re.sub(r"^(GET|POST|PUT|PATCH|DELETE) \S+: ", "", str(error.message)).strip()


def is_switched_off(error: exceptions.GoogleAPICallError) -> bool:
    """Whether Google refused because the API is not enabled, in the newer or the older form of its errors."""
    return error.code == 403 and bool(_reasons(error) & {"SERVICE_DISABLED", "accessNotConfigured"})


def _reasons(error: exceptions.GoogleAPICallError) -> set[str]:
    """Newer APIs give one in an ErrorInfo, Cloud Storage and other older ones give a list."""
    older = (item.get("reason") for item in error.errors if isinstance(item, dict))
    return {reason for reason in (error.reason, *older) if reason}


def _principal_in(message: str) -> str:
    """Cloud Storage begins its refusals with the account; most other APIs do not name it."""
    match = re.match(r"(\S+@\S+) does not have", message)
    return match[1] if match else ""


def member(principal: str) -> str:
    """An account as IAM policies name it, with a placeholder for one that is not known."""
    if not principal:
        return "user:YOUR_EMAIL"
    return f"serviceAccount:{principal}" if principal.endswith(".gserviceaccount.com") else f"user:{principal}"


def brief(error: Exception) -> str:
    """An error in one short line. Of a failed connection, the host that did not answer and the kind of fault."""
    text = " ".join(str(error).split())
    if host := re.search(r"host='([^']+)'", text):
        kinds = re.findall(r"\w+Error", text)
        return f"{host[1]}, {kinds[-1] if kinds else type(error).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."
