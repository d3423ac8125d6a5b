"""The login, the project, its billing account and its APIs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from environment import Environment
from environment.services import SERVICES
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, compared

_LOGIN, _PROJECT, _BILLING, _APIS = "login", "project", "billing account", "APIs"


def project(environment: Environment) -> Question:
    """https://cloud.google.com/resource-manager/reference/rest/v3/projects/get"""
    return Question(
        host="cloudresourcemanager.googleapis.com",
        path=f"/v3/projects/{environment.settings.project_id}",
        permission="resourcemanager.projects.get",
        role="roles/browser",
    )


def billing_question(environment: Environment) -> Question:
    """https://cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo"""
    return Question(
        host="cloudbilling.googleapis.com",
        path=f"/v1/projects/{environment.settings.project_id}/billingInfo",
        permission="resourcemanager.projects.get",
        role="roles/browser",
    )


def _enabled(environment: Environment) -> Question:
    """https://cloud.google.com/service-usage/docs/reference/rest/v1/services/list"""
    return Question(
        host="serviceusage.googleapis.com",
        path=f"/v1/projects/{environment.settings.project_id}/services?filter=state:ENABLED&pageSize=200",
        permission="serviceusage.services.list",
        role="roles/serviceusage.serviceUsageConsumer",
    )


def login_and_project(environment: Environment, answers: Answers) -> Iterator[Row]:
    """Without both, no other question has an answer."""
    settings, answer = environment.settings, answers[project(environment)]
    accepted, need = "one that Google accepts", settings.project_id
    if not answer.code:
        yield answer.unknown(_LOGIN, accepted)
        return
    yield compared(
        _LOGIN, accepted, answer.why if answer.code == 401 else "accepted", ok=answer.code != 401, fix=answer.fix
    )
    if answer.code == 401:
        return
    if answer.switched_off:
        yield answer.unknown(_PROJECT, need)
        return
    if answer.code in (403, 404):
        # Google does not say which: https://cloud.google.com/resource-manager/reference/rest/v3/projects/get
        have = "it does not exist, or you may not see it"
        yield compared(_PROJECT, need, have, ok=False, fix="gcloud projects list    # then correct PROJECT_ID")
        return
    if answer.why:
        yield answer.unknown(_PROJECT, need)
        return
    state, number = str(answer.body["state"]), str(answer.body["name"]).rpartition("/")[2]
    if settings.project_number not in ("", number):
        fix = f"set PROJECT_NUMBER={number}, or leave it empty"
        yield compared(_PROJECT, f"{need}, {settings.project_number}", f"its number is {number}", ok=False, fix=fix)
        return
    fix = f"gcloud projects undelete {settings.project_id}"
    yield compared(_PROJECT, need, state.lower().replace("_", " "), ok=state == "ACTIVE", fix=fix)


def billing(environment: Environment, answers: Answers) -> Iterator[Row]:
    answer, need, id_ = answers[billing_question(environment)], "one that is open", environment.settings.project_id
    if answer.why:
        yield answer.unknown(_BILLING, need)
        return
    account = str(answer.body.get("billingAccountName") or "").rpartition("/")[2]
    enabled = answer.body["billingEnabled"] is True
    have = f"{account}, open" if enabled else f"{account} is closed" if account else "none"
    fix = f"gcloud billing projects link {id_} --billing-account=ACCOUNT    # gcloud billing accounts list"
    yield compared(_BILLING, need, have, ok=enabled, fix=fix)


def _apis(environment: Environment, answers: Answers) -> Iterator[Row]:
    # Those of TPU VMs are enabled by their own stack.
    answer, need = answers[_enabled(environment)], f"{len(SERVICES)} enabled"
    if answer.why:
        yield answer.unknown(_APIS, need)
        return
    enabled = {re.sub(".*/", "", str(service["name"])) for service in answer.body.get("services", [])}
    off = [service for service in SERVICES if service not in enabled]
    names = ", ".join(service.partition(".")[0] for service in off)
    yield compared(_APIS, need, f"off: {names}" if off else "enabled", ok=not off, fix="tpuenv bootstrap")


def _questions(environment: Environment) -> Iterator[Question]:
    yield from (project(environment), billing_question(environment), _enabled(environment))


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    yield from login_and_project(environment, answers)
    yield from billing(environment, answers)
    yield from _apis(environment, answers)


CHECK = Check("project", _questions, _rows)
