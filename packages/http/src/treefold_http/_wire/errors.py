"""The exceptions of requests, and nothing that handles one.

`HTTPError` and its subclasses are raised by applications to answer with a status; they are rendered
in `_failures.problems`. The errors that stop a boot are in `_runtime.boot_report`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict, Unpack, cast

from treefold_http._headers.header_fields import encode_header
from treefold_http._headers.status_phrases import find_status_phrase
from treefold_http._wire.aliases import JSONObject


class ClientDisconnect(Exception):  # the field's name for it
    """The client left before its body was complete."""


class HTTPError(Exception):
    """Answer the request with `status`.

    Args:
        status: an HTTP status code from 400 to 599.
        message: the `detail` of the problem document; the status phrase when empty.
        headers: further response headers.
        errors: entries of a validation failure, each with `loc`, `msg` and `type`, and with `ctx`
            for the limit that the value missed.

    Attributes:
        status: the status of the response.
        message: the detail for the client; may be empty.
        headers: further response headers, a dict of its own.
        errors: the entries of a validation failure; None for another error.
        title: the standard phrase of the status, such as `Not Found`.

    Raises:
        ValueError: when `status` is no error status, or a header cannot be sent.
    """

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        if not isinstance(cast("object", status), int) or not 400 <= status <= 599:
            raise ValueError(
                f"HTTPError must have a status from 400 to 599, got {status!r}; return a"
                " Response for any other"
            )
        for name, value in (headers or {}).items():
            # a field that cannot be sent is refused where the error is made, not in its answer
            encode_header(name, value)
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.errors = errors

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"headers": self.headers, "errors": self.errors}
        return _rebuild_error, (type(self), self.status, self.message, options)

    @property
    def title(self) -> str:
        """The standard phrase of the status, such as `Not Found`."""
        return find_status_phrase(self.status, "Error")

    def __str__(self) -> str:
        return f"{self.status} {self.message or self.title}"


def _rebuild_error(kind: type[HTTPError], status: int, message: str, options: Any) -> HTTPError:
    """Rebuild a pickled error: the constructors of the classes take different arguments."""
    made = kind.__new__(kind)
    HTTPError.__init__(made, status, message, **options)
    return made


class _Options(TypedDict, total=False):
    headers: Mapping[str, str] | None
    errors: Sequence[Mapping[str, Any]] | None


class _StatusError(HTTPError):
    """An `HTTPError` whose class determines the status; a class below one of these inherits it."""

    code: ClassVar[int]

    def __init_subclass__(cls, *, code: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if code is not None:
            cls.code = code

    def __init__(self, message: str = "", **options: Unpack[_Options]) -> None:
        super().__init__(self.code, message, **options)


class BadRequest(_StatusError, code=400):
    """400: the request cannot be understood, for example a body that is not valid JSON."""


class Unauthorized(_StatusError, code=401):
    """401: no credentials, or invalid ones."""


class Forbidden(_StatusError, code=403):
    """403: the credentials are valid and do not permit the request."""


class NotFound(_StatusError, code=404):
    """404: there is no resource at this path."""


class MethodNotAllowed(_StatusError, code=405):
    """405: the path exists for other methods; give `headers={"Allow": ...}`."""


class Conflict(_StatusError, code=409):
    """409: the request clashes with the state of the resource."""


class PayloadTooLarge(_StatusError, code=413):
    """413: the body is above the limit of the route."""


class UnsupportedMediaType(_StatusError, code=415):
    """415: the body has a content type or coding the route does not take."""


class UnprocessableEntity(_StatusError, code=422):
    """422: well-formed but not valid; `errors` lists the places."""


def build_unprocessable_error(part: str, errors: list[JSONObject]) -> UnprocessableEntity:
    """Return a 422 whose message is the first of its entries, for formats without `errors`.

    Args:
        part: what is not valid: the request, its body or a message.
        errors: the entries, at least one.
    """
    where = ".".join(map(str, errors[0]["loc"]))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"The {part} is not valid: {where}: {errors[0]['msg']}{more}"
    return UnprocessableEntity(message, errors=errors)


class TooManyRequests(_StatusError, code=429):
    """429: the client exceeds a rate limit; give `headers={"Retry-After": ...}`."""


class ServiceUnavailable(_StatusError, code=503):
    """503: the service cannot answer at present."""


NOTHING_HERE = "There is nothing at this path"


def require_read_method(method: str, message: str = "This path answers GET, HEAD") -> None:
    """Refuse other methods than GET and HEAD.

    Raises:
        MethodNotAllowed: for any other.
    """
    if method not in ("GET", "HEAD"):
        raise MethodNotAllowed(message, headers={"Allow": "GET, HEAD"})
