"""Secrets: short, guessable, well known, used twice, or under version control.

No finding shows a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from treefold_http._deploy.deployment import Deployment, normalize_name
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.sources import DOTENV, ENVIRONMENT
from treefold_http._sessions.signing import MIN_SECRET

KINDS = make_kinds(
    """
    severe secret-short: a secret is short enough to be found by trying;
      an attacker tries secrets against one signature, at home, and then signs what he likes
    severe secret-guessable: a secret is a placeholder or a pattern;
      an attacker tries the placeholders of templates first, and then signs sessions of anybody
    severe secret-example: a secret is that of an example;
      an attacker knows it from the documentation, and signs sessions of anybody
    severe secret-in-git: a secret or a password is under version control;
      an attacker reads it in any copy of the repository, also years later
    warning secret-reused: one secret serves two purposes;
      an attacker learns it where it is shared with others, and uses it where it is not
    """
)
SHORT, GUESSABLE, EXAMPLE, IN_GIT, REUSED = KINDS

EXAMPLES = frozenset(
    {
        "a secret that everybody can read protects nobody",
        "this key is public and signs the sessions of an example",
        "this key is public and signs the tokens of an example",
        "only for this page: at least 32 bytes, never in version control",
    }
)
"""The secrets of the examples and of the documentation."""

_ENDINGS = {
    **dict.fromkeys(("secret", "secret_key", "signing_key", "encryption_key"), 16),
    **dict.fromkeys(("password", "passphrase", "token", "api_key", "private_key"), 0),
}
"""Endings of names in `[app]` that are secrets, and their least bytes; others choose passwords."""
_LEAST_CHARACTERS = 8
"""Different characters of a secret; a random one of 16 has more."""
_PLACEHOLDERS = (
    *("changeme", "replaceme", "placeholder", "insecure", "example", "yoursecret", "mysecret"),
    *("topsecret", "supersecret", "secretkey", "password", "qwerty", "123456789", "abcdefgh"),
)
_NEW = "$(python -c 'import secrets; print(secrets.token_urlsafe(48))')"


class _Secret(NamedTuple):
    """One secret of the settings.

    Attributes:
        setting: its setting, such as `secret_key` or `app.webhook_secret`.
        value: the secret.
        file: where it is given.
        variable: the variable to set instead; empty if there is none.
        least: the least bytes of it; 0 for a password of another service.
    """

    setting: str
    value: str
    file: str
    variable: str
    least: int

    def format_fix_line(self, value: str) -> str:
        """Return the line to write: a variable, and what to take out of a settings file."""
        if not self.variable:
            return f"# {self.setting} without its password"
        if self.file in (ENVIRONMENT, DOTENV):
            return f"{self.variable}={value}"
        return f"# without {self.setting}; in the environment:\n{self.variable}={value}"


def check_secrets(deployment: Deployment) -> Iterator[Finding]:
    """Find secrets that others know, or can find."""
    first: dict[str, _Secret] = {}
    for secret in _collect_secrets(deployment):
        yield from _check_secret_strength(secret)
        tracked = deployment.sources.git_tracked_settings_files
        if secret.file != ENVIRONMENT and secret.file in tracked:
            text = f"{secret.setting} is written in {secret.file}, which git keeps"
            write = "git rm --cached .env  # list it in .gitignore, and make new secrets"
            line = write if secret.file == DOTENV else secret.format_fix_line("...  # a new one")
            yield IN_GIT.make_finding(secret.file, text, line)
        known = first.setdefault(secret.value, secret)
        signs = known.least or secret.least  # several services may know one user by one password
        if signs and known.setting.partition(".")[0] != secret.setting.partition(".")[0]:
            text = f"{known.setting} and {secret.setting} are the same"
            yield REUSED.make_finding(secret.file, text, secret.format_fix_line(_NEW))


def _check_secret_strength(secret: _Secret) -> Iterator[Finding]:
    size = len(secret.value.encode())
    write = secret.format_fix_line(_NEW)
    if secret.value in EXAMPLES:
        text = f"{secret.setting} is the secret of an example"
        yield EXAMPLE.make_finding(secret.file, text, write)
    elif not secret.least:
        return
    elif size < secret.least:
        text = f"{secret.setting} has {size} bytes, fewer than {secret.least}"
        yield SHORT.make_finding(secret.file, text, write)
    elif is_guessable(secret.value):
        text = f"{secret.setting} is a placeholder or a pattern"
        yield GUESSABLE.make_finding(secret.file, text, write)


def is_guessable(value: str) -> bool:
    """Return True for a secret that repeats few characters, or holds a word of placeholders."""
    plain = normalize_name(value)
    return len(set(value)) < _LEAST_CHARACTERS or any(word in plain for word in _PLACEHOLDERS)


def _collect_secrets(deployment: Deployment) -> Iterator[_Secret]:
    settings, sources = deployment.settings, deployment.sources
    if settings.secret_key is not None:
        file = sources.find_setting_file("secret_key")
        yield _Secret("secret_key", settings.secret_key, file, "TREEFOLD_SECRET_KEY", MIN_SECRET)
    for value in settings.secret_key_fallbacks:
        file = sources.find_setting_file("secret_key_fallbacks")
        variable = "TREEFOLD_SECRET_KEY_FALLBACKS"
        yield _Secret("secret_key_fallbacks", value, file, variable, MIN_SECRET)
    for name, value in settings.app.items():
        ending = next((each for each in _ENDINGS if name.lower().endswith(each)), None)
        if isinstance(value, str) and value and ending is not None:
            file, variable = sources.find_setting_file("app", name), f"TREEFOLD_APP__{name.upper()}"
            yield _Secret(f"app.{name}", str(value), file, variable, _ENDINGS[ending])
    urls = settings.databases
    yield from _collect_url_passwords(deployment, "databases", urls, "TREEFOLD_DATABASE_URL")
    yield from _collect_url_passwords(deployment, "caches", settings.caches, "TREEFOLD_CACHE_URL")
    if settings.redis_url is not None:
        urls = {"": settings.redis_url}
        yield from _collect_url_passwords(deployment, "redis_url", urls, "TREEFOLD_REDIS_URL")


def _collect_url_passwords(
    deployment: Deployment, setting: str, urls: Mapping[str, str], variable: str
) -> Iterator[_Secret]:
    for alias, url in urls.items():
        if password := parse_url_password(url):
            file = deployment.sources.find_setting_file(setting, alias or None)
            own = variable if alias in ("", "default") else ""
            yield _Secret(f"{setting}.{alias}".rstrip("."), password, file, own, 0)


def parse_url_password(url: str) -> str:
    """Return the password in a URL; empty without one."""
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""
