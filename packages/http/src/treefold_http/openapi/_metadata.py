"""The parts of an operation that both kinds of document hold: id, words, tags, deprecation."""

from __future__ import annotations

from treefold_http._description.routes import RouteDescription
from treefold_http._description.words import read_words
from treefold_http._plans.deprecation import Deprecation
from treefold_http._wire.aliases import JSONObject


def build_operation_metadata(described: RouteDescription) -> JSONObject:
    """Return summary, description, tags and deprecation, as both kinds of document hold them."""
    summary, description = read_words(described.module)
    said: JSONObject = {"operationId": described.id}
    if summary:
        said["summary"] = summary
    if description:
        said["description"] = description
    if tags := list_tags(described):
        said["tags"] = tags
    if described.deprecation is not None:
        said["deprecated"] = True
        said |= build_deprecation_extensions(described.deprecation)
    return said


def build_deprecation_extensions(deprecation: Deprecation) -> JSONObject:
    """Return what OpenAPI has no names for: `x-sunset`, and `x-deprecation` with the rest."""
    made: JSONObject = {}
    if deprecation.sunset is not None:
        made["x-sunset"] = deprecation.sunset.isoformat()
    rest: JSONObject = {}
    if deprecation.since is not None:
        rest["since"] = deprecation.since.isoformat()
    if deprecation.link:
        rest["link"] = deprecation.link
    if deprecation.successor:
        rest["successor"] = deprecation.successor
    return made | {"x-deprecation": rest} if rest else made


def list_tags(described: RouteDescription) -> list[str]:
    """Return the tags of the module, else its folder as the only tag."""
    if described.module.tags is not None:
        return list(dict.fromkeys(described.module.tags))
    return [described.place.tag] if described.place.tag else []
