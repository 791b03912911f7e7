"""The contract of an HTTP API as a text file, `routes.lock`.

Only names are exported here; the code is in the underscored rooms. The package holds pure data: it
imports no project, opens no file but those of its command, and has no requirements.
"""

from typing import TYPE_CHECKING

from treefold_contract.__about__ import __version__ as __version__
from treefold_contract._clients.client_files import (
    find_stale_client_files as find_stale_client_files,
    update_client_files as update_client_files,
    write_client as write_client,
)
from treefold_contract._clients.places import Place as Place, build_places as build_places
from treefold_contract._clients.python_client import (
    is_attribute as is_attribute,
    write_python_client as write_python_client,
)
from treefold_contract._clients.python_runtime import (
    load_python_runtime as load_python_runtime,
)
from treefold_contract._clients.typescript_client import (
    write_typescript_client as write_typescript_client,
)
from treefold_contract._clients.words import RouteWords as RouteWords
from treefold_contract._errors import LockError as LockError
from treefold_contract._facts.facts import (
    Answer as Answer,
    AnswerField as AnswerField,
    Auth as Auth,
    Body as Body,
    Deprecation as Deprecation,
    Input as Input,
    Limit as Limit,
    Lock as Lock,
    Message as Message,
    RouteFacts as RouteFacts,
    Settings as Settings,
    VersionFacts as VersionFacts,
)
from treefold_contract._facts.paths import Segment as Segment
from treefold_contract._facts.selection import (
    select_routes as select_routes,
    select_version as select_version,
)
from treefold_contract._relation.inclusion import Witness as Witness
from treefold_contract._relation.mismatches import (
    Mismatch as Mismatch,
    find_mismatch as find_mismatch,
)
from treefold_contract._relation.relation import (
    Comparison as Comparison,
    compare_types as compare_types,
)
from treefold_contract._report.accepted import (
    Acceptance as Acceptance,
    apply_accepted as apply_accepted,
    read_accepted as read_accepted,
    write_acceptance as write_acceptance,
)
from treefold_contract._report.annotations import (
    format_github as format_github,
    format_markdown as format_markdown,
)
from treefold_contract._report.reports import (
    format_json as format_json,
    format_text as format_text,
)
from treefold_contract._report.usage import (
    RouteUsage as RouteUsage,
    Usage as Usage,
    apply_usage as apply_usage,
    read_usage as read_usage,
)
from treefold_contract._rules.findings import Finding as Finding
from treefold_contract._rules.lock_diff import diff_locks as diff_locks
from treefold_contract._rules.rule_table import (
    GRAVITY as GRAVITY,
    RULES as RULES,
    Rule as Rule,
    Verdict as Verdict,
)
from treefold_contract._text.lock_reader import read_lock as read_lock
from treefold_contract._text.lock_writer import write_lock as write_lock
from treefold_contract._text.type_parser import read_type as read_type
from treefold_contract._text.type_text import write_type as write_type
from treefold_contract._types.json_form import (
    type_from_json as type_from_json,
    type_to_json as type_to_json,
)
from treefold_contract._types.literals import write_literal as write_literal
from treefold_contract._types.nodes import (
    COMPUTED as COMPUTED,
    KINDS as KINDS,
    NULL as NULL,
    Alphabet as Alphabet,
    AnyType as AnyType,
    Choice as Choice,
    ChoiceValue as ChoiceValue,
    Definition as Definition,
    Definitions as Definitions,
    ForeignType as ForeignType,
    JsonValue as JsonValue,
    Kind as Kind,
    Limits as Limits,
    ListType as ListType,
    MapType as MapType,
    Member as Member,
    Record as Record,
    Reference as Reference,
    Scalar as Scalar,
    Side as Side,
    TupleType as TupleType,
    TypeNode as TypeNode,
    UnionType as UnionType,
)
from treefold_contract._types.views import without_input_rules as without_input_rules

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = ["__version__", *sorted(name for name in dir() if name[0].isalpha())]
    __all__.remove("TYPE_CHECKING")
