"""Asks Google many questions at once. One that cannot be answered hides no other."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import requests
from google.api_core import exceptions
from google.auth.exceptions import TransportError

from tpuenv.google.clients import GOOGLE_ERRORS, LOG_IN, Clients, brief, cause_of, is_switched_off, member, message_of
from tpuenv.preflight.question import Answer, Question
from vocabulary.printable import shortened

_AT_ONCE = 8
_LONGEST = 200  # characters of a message that are shown

# The person names the project as the one whose quota counts, which takes a permission of its own.
# https://cloud.google.com/docs/quotas/set-quota-project#caller_permission
_NOT_TO_BE_USED = "USER_PROJECT_DENIED"


def ask_all(
    clients: Clients, questions: Iterable[Question], *, progress: Callable[[int, int], None]
) -> dict[Question, Answer]:
    """The answers; `progress` gets how many there are already, and of how many. Raises nothing but an interrupt."""
    asked = list(dict.fromkeys(questions))
    waiting: SimpleQueue[Question] = SimpleQueue()
    for question in asked:
        waiting.put(question)
    arrived: SimpleQueue[tuple[Question, Answer | Exception]] = SimpleQueue()

    def work() -> None:
        with suppress(Empty):
            while True:
                question = waiting.get_nowait()
                try:
                    arrived.put((question, ask(clients, question)))
                except Exception as error:
                    arrived.put((question, error))

    # Daemons, for an interrupt does not wait for Google: the threads of a ThreadPoolExecutor are waited for at exit.
    for _ in range(_AT_ONCE):
        threading.Thread(target=work, daemon=True).start()
    answers: dict[Question, Answer] = {}
    while len(answers) < len(asked):
        question, answer = arrived.get()
        if isinstance(answer, Exception):
            raise answer
        answers[question] = answer
        progress(len(answers), len(asked))
    return answers


def ask(clients: Clients, question: Question) -> Answer:
    """All pages of the answer as one."""
    url = clients.api_url(question.host) + question.path
    body: dict[str, Any] = {}
    try:
        while True:
            page = _page(clients, question, url, str(body.pop("nextPageToken", "")))
            for key, value in page.items():
                body[key] = [*body[key], *value] if isinstance(value, list) and key in body else value
            if not body.get("nextPageToken"):
                return Answer(body=body, fix=_granting(clients, question, question.role) if question.tested else "")
    except (requests.exceptions.JSONDecodeError, TypeError, AttributeError, RecursionError):
        return Answer(code=0, why=f"{question.host} did not answer with a JSON object", fix="run this again")
    except GOOGLE_ERRORS as error:
        return _unanswered(clients, question, cause_of(error))


def _page(clients: Clients, question: Question, url: str, token: str) -> dict[str, Any]:
    send = clients.retry(clients.request)
    if question.tested:
        response = send("POST", url, json={"permissions": list(question.tested)})
    else:
        response = send("GET", url, params={"pageToken": token} if token else None)
    page: dict[str, Any] = response.json()
    return page


def _unanswered(clients: Clients, question: Question, error: Exception) -> Answer:
    if isinstance(error, TransportError | requests.exceptions.RequestException):
        fix = "check the connection and HTTPS_PROXY, then run this again"
        return Answer(code=0, why=f"no answer: {brief(error)}", fix=fix)
    if not isinstance(error, exceptions.GoogleAPICallError) or error.code == 401:
        return Answer(code=401, why=f"Google does not accept your login: {_message(error)}", fix=LOG_IN)
    if is_switched_off(error):
        fix = f"gcloud services enable {question.host} --project={clients.project_id}"
        return Answer(code=403, switched_off=True, why=f"{question.host} is off", fix=fix)
    if error.code == 403:
        permission, role = question.permission, question.role
        if error.reason == _NOT_TO_BE_USED:
            permission, role = "serviceusage.services.use", "roles/serviceusage.serviceUsageConsumer"
        return Answer(code=403, why=f"takes {permission}", fix=_granting(clients, question, role))
    if error.code == 404:
        return Answer(code=404, why="does not exist", fix="run this again")
    return Answer(code=error.code or 0, why=f"{error.code or 'error'}: {_message(error)}", fix="run this again")


def _granting(clients: Clients, question: Question, role: str) -> str:
    """The command by which an administrator gives the caller a role in the project that the question is about."""
    about = re.search("/projects/([^/:?]+)", question.path)
    return (
        f"gcloud projects add-iam-policy-binding {about[1] if about else clients.project_id} "
        f"--member={member(clients.principal)} --role={role}"
    )


def _message(error: Exception) -> str:
    text = message_of(error) if isinstance(error, exceptions.GoogleAPICallError) else brief(error)
    return shortened(text, longest=_LONGEST)
