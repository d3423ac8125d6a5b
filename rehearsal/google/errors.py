"""The answers of Google's APIs that are not success. https://cloud.google.com/apis/design/errors"""

from __future__ import annotations

from collections.abc import Callable


class ApiError(Exception):
    """An error answer; `text` is what the provider prints of it. `reason` is empty in the newer APIs."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.text = f"googleapi: Error {code}: {message}" + (f", {reason}" if reason else "")


def bad_request(message: str) -> ApiError:
    """Refused by GKE, IAM, Cloud Build."""
    return ApiError(400, message, "badRequest")


def invalid(message: str) -> ApiError:
    """Refused by Compute Engine and Cloud Storage."""
    return ApiError(400, message, "invalid")


def in_use(message: str) -> ApiError:
    """Compute Engine does not delete or change what another resource uses."""
    return ApiError(400, message, "resourceInUseByAnotherResource")


def forbidden(message: str) -> ApiError:
    return ApiError(403, message, "forbidden")


def not_found(message: str) -> ApiError:
    return ApiError(404, message, "notFound")


def already_exists(message: str) -> ApiError:
    return ApiError(409, message, "alreadyExists")


def require(holds: object, message: str, error: Callable[[str], ApiError] = bad_request) -> None:
    """Raises `error` with the message unless `holds` is true."""
    if not holds:
        raise error(message)
