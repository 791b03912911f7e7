"""Passwords with the extra `argon2`: hashes of scrypt become hashes of argon2."""

from __future__ import annotations

import pytest

from treefold_http import TreefoldError
from treefold_http.auth import _passwords, hash_password, verify_password


def test_a_hash_of_scrypt_becomes_one_of_argon2(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_passwords, "_find_argon2_hasher", lambda: None)
        scrypt = hash_password("a")  # the one of these tests with all that it costs
        assert scrypt.startswith("$scrypt$ln=15,r=8,p=3$")
    new = verify_password("a", scrypt).new_hash
    assert new is not None
    assert new.startswith("$argon2id$")
    monkeypatch.setattr(_passwords, "_find_argon2_hasher", lambda: None)
    with pytest.raises(TreefoldError, match=r'needs argon2-cffi; run pip install "treefold\[argon'):
        verify_password("a", new)
