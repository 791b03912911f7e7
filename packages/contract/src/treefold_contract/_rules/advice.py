"""What to do instead of a change that breaks clients, or makes a route less secure."""

from __future__ import annotations

from treefold_contract._rules.rule_table import Verdict

NEW_VERSION = "make the change in a new version"
ADVICE = {
    "route-removed": "announce a sunset first, or keep the route in this version",
    "route-removed-early": "keep the route until its sunset",
    "route-shadows": "give the static path another name",
    "route-shadows-methods": "add the missing method, or give the static path another name",
    "segment-renamed": "keep the old path beside the new one",
    "version-removed": "announce a sunset first",
    "unversioned-moved": "set default_version to the version before",
    "param-added-required": "give the input a default",
    "file-part-added-required": "make the file optional",
    "param-required": "keep the default",
    "param-moved": "accept both places",
    "param-alias-removed": "keep the other name",
    "body-required": "give the body a default",
    "field-added-required": "give the member a default",
    "field-required": "keep the default",
    "field-removed": "keep the member",
    "field-renamed": "add the new member beside the old one",
    "field-optional": "always send the member",
    "type-forgotten": "annotate the type again",
    "type-unknown": "use a type that is known",
    "enum-value-added": "declare the choice as open, or map the value for old clients",
    "union-member-added": "declare the union as open",
    "null-added": "send a value in place of null",
    "guard-lost": "cover the route by the guard again",
    "auth-removed": "require credentials again",
    "auth-option-added": "remove the way to be authorised",
    "scope-removed": "require the scope again",
    "sunset-earlier": "keep the sunset that was announced",
    "sunset-too-soon": "choose a later sunset",
    "old-version-changed": "make the change in the newest version, or in all of them",
    "deprecated-undated": "give the deprecation a date",
}
"""By rule; what has no entry is advised by its verdict."""


def find_advice(rule: str, verdict: Verdict) -> str:
    """Return what to do instead; empty for a change that needs nothing."""
    match verdict:
        case "breaking":
            return ADVICE.get(rule, NEW_VERSION)
        case "weaker":
            return ADVICE.get(rule, "accept it with a reason")
        case "warning":
            return ADVICE.get(rule, "tell clients before")
        case _:
            return ""
