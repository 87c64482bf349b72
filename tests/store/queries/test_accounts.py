"""Accounts: who may sign in, with what, and for how long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from siteloom.core.errors import AccountError, MissingExtra, SiteloomError, TooManyFailures
from siteloom.core.settings import StoreSettings
from siteloom.store import schema
from siteloom.store.queries.accounts import (
    FAILURES_OF_A_NAME,
    FAILURES_OF_AN_ADDRESS,
    Accounts,
    Passwords,
    account_name,
)
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import Clock, day

CHEAP = Passwords(rounds=1, kibibytes=8, lanes=1)
KEPT = "what is kept of a password"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(store_settings: StoreSettings, clock: Clock) -> Iterator[Accounts]:
    store = open_store(store_settings, create=True, clock=clock)
    yield store.accounts
    store.close()


def rows(accounts: Accounts, table: str) -> int:
    with accounts.engine.connect() as connection:
        return connection.execute(
            select(func.count()).select_from(schema.metadata.tables[table])
        ).scalar_one()


def test_the_first_account_is_an_admin_and_those_after_it_are_editors(accounts: Accounts) -> None:
    assert not accounts.any_enabled()
    assert accounts.add("bo", None, KEPT) == ("bo", "admin", True, day(0))
    assert accounts.any_enabled()
    assert accounts.add("ana", None, KEPT).role == "editor"
    assert accounts.add("Zoë@home", "viewer", KEPT).name == "zoë@home"
    assert [(account.name, account.role) for account in accounts.all()] == [
        ("ana", "editor"),
        ("bo", "admin"),
        ("zoë@home", "viewer"),
    ]


def test_the_first_account_can_be_nothing_less(accounts: Accounts) -> None:
    with pytest.raises(AccountError, match="must be an admin") as caught:
        accounts.add("ana", "editor", KEPT)
    assert caught.value.field == "role"
    assert accounts.all() == []


def test_names_are_the_same_however_they_are_written(accounts: Accounts) -> None:
    accounts.add(" Ana ", None, KEPT)
    with pytest.raises(AccountError, match="There is an account ana already") as caught:
        accounts.add("ANA", None, KEPT)
    assert caught.value.field == "name"
    assert accounts.password_of("aNa") == KEPT
    assert accounts.find("\N{FULLWIDTH LATIN SMALL LETTER A}na") == accounts.find("ana")


def test_names_that_lead_astray_are_refused(accounts: Accounts) -> None:
    for name in ("", " ", "a b", "a/b", "-a", "_", "a\0", "\ud800", "a" * 65, "local", "<i>"):
        with pytest.raises(AccountError) as caught:
            accounts.add(name, None, KEPT)
        assert caught.value.field == "name"
        assert accounts.find(name) is None
        assert accounts.password_of(name) is None


@given(st.text())
def test_the_name_of_a_name_is_itself(text: str) -> None:
    assert account_name(account_name(text)) == account_name(text)


def test_the_last_admin_stays(accounts: Accounts) -> None:
    accounts.add("ana", "admin", KEPT)
    accounts.add("bo", "admin", KEPT)
    accounts.disable("bo")
    changes: tuple[Callable[[], None], ...] = (
        lambda: accounts.disable("ana"),
        lambda: accounts.set_role("ana", "editor"),
    )
    for change in changes:
        with pytest.raises(AccountError, match="ana is the last admin") as caught:
            change()
        assert caught.value.field == "role"
    assert [account.is_enabled for account in accounts.all()] == [True, False]
    accounts.set_password("bo", KEPT)
    accounts.set_role("ana", "viewer")
    assert [account.role for account in accounts.all()] == ["viewer", "admin"]


def test_accounts_that_are_not_there_cannot_be_changed(accounts: Accounts) -> None:
    for change in (
        lambda: accounts.set_password("ana", KEPT),
        lambda: accounts.set_role("ana", "admin"),
        lambda: accounts.disable("ana"),
        lambda: accounts.open_session("ana"),
        lambda: accounts.add_key("ana", "export"),
    ):
        with pytest.raises(AccountError, match="There is no account ana"):
            change()


def test_a_session_lasts_two_weeks_and_only_its_hash_is_kept(accounts: Accounts, clock: Clock) -> None:
    accounts.add("ana", None, KEPT)
    key = accounts.open_session("ana")
    assert len(key) == 43
    with accounts.engine.connect() as connection:
        (kept,) = connection.execute(select(schema.sessions.c.key_hash)).scalars()
    assert len(kept) == 32
    assert key.encode() not in kept
    assert accounts.of_session(key) == accounts.find("ana")
    assert accounts.of_session(key[:-1]) is None
    assert accounts.of_session("\ud800") is None
    clock.turn(days=13, hours=23)
    assert accounts.of_session(key) is not None
    clock.turn(hours=1)
    assert accounts.of_session(key) is None
    assert rows(accounts, "sessions") == 1
    accounts.open_session("ana")
    assert rows(accounts, "sessions") == 1


def test_signing_out_ends_one_session(accounts: Accounts) -> None:
    accounts.add("ana", None, KEPT)
    one, other = accounts.open_session("ana"), accounts.open_session("ana")
    accounts.close_session(one)
    assert accounts.of_session(one) is None
    assert accounts.of_session(other) is not None


def test_another_password_ends_all_sessions_of_its_account(accounts: Accounts) -> None:
    for name in ("ana", "bo"):
        accounts.add(name, None, KEPT)
    sessions = [accounts.open_session(name) for name in ("ana", "ana", "bo")]
    key = accounts.add_key("ana", "export")
    accounts.set_password("ana", "another")
    assert [accounts.of_session(session) is None for session in sessions] == [True, True, False]
    assert accounts.of_key(key) is not None
    assert accounts.password_of("ana") == "another"


def test_a_disabled_account_is_out_at_once_and_for_good(accounts: Accounts) -> None:
    accounts.add("ana", "admin", KEPT)
    accounts.add("bo", "viewer", KEPT)
    session, key = accounts.open_session("bo"), accounts.add_key("bo", "export")
    accounts.disable("bo")
    assert accounts.of_session(session) is None
    assert accounts.of_key(key) is None
    assert accounts.password_of("bo") is None
    with pytest.raises(AccountError, match="no account bo that is in use"):
        accounts.open_session("bo")
    with pytest.raises(AccountError, match="no account bo that is in use"):
        accounts.add_key("bo", "export")
    accounts.set_password("bo", KEPT)
    assert accounts.of_session(session) is None
    assert accounts.of_key(key) is None
    bo = accounts.find("bo")
    assert bo is not None
    assert bo.is_enabled


def test_another_role_ends_the_sessions_of_an_account_and_of_no_other(accounts: Accounts) -> None:
    accounts.add("ana", "admin", KEPT)
    accounts.add("bo", "viewer", KEPT)
    sessions = {name: accounts.open_session(name) for name in ("ana", "bo")}
    key = accounts.add_key("bo", "export")
    accounts.set_role("bo", "editor")
    assert accounts.of_session(sessions["bo"]) is None
    assert accounts.of_session(sessions["ana"]) is not None
    by_key = accounts.of_key(key)
    assert by_key is not None
    assert by_key.role == "editor"


def test_a_key_is_known_until_it_is_revoked_by_its_owner(accounts: Accounts, clock: Clock) -> None:
    for name in ("ana", "bo"):
        accounts.add(name, None, KEPT)
    key, other = accounts.add_key("ana", " export "), accounts.add_key("ana", "import")
    assert key.startswith("siteloom_")
    assert [(known.label, known.created_at, known.last_used_at) for known in accounts.keys("ana")] == [
        ("export", day(0), None),
        ("import", day(0), None),
    ]
    found = accounts.of_key(key)
    assert found is not None
    assert found.name == "ana"
    assert accounts.of_key(key + "x") is None
    number = accounts.keys("ana")[0].id
    assert not accounts.revoke_key("bo", number)
    assert accounts.revoke_key("ana", number)
    assert not accounts.revoke_key("ana", number)
    assert accounts.of_key(key) is None
    assert accounts.of_key(other) is not None
    assert accounts.keys("bo") == []


def test_the_use_of_a_key_is_noted_once_a_minute(accounts: Accounts, clock: Clock) -> None:
    accounts.add("ana", None, KEPT)
    key = accounts.add_key("ana", "export")

    def used_after(**time: float) -> datetime | None:
        clock.turn(**time)
        accounts.of_key(key)
        return accounts.keys("ana")[0].last_used_at

    first = used_after(days=1)
    assert first == day(1)
    assert used_after(seconds=59) == first
    assert used_after(seconds=1) == first + timedelta(minutes=1)


def test_a_key_says_what_it_is_for(accounts: Accounts) -> None:
    accounts.add("ana", None, KEPT)
    for label in ("", "  ", "x" * 101):
        with pytest.raises(AccountError, match="what the key is for") as caught:
            accounts.add_key("ana", label)
        assert caught.value.field == "label"


def test_ten_wrong_passwords_of_a_name_are_enough_for_a_quarter_of_an_hour(
    accounts: Accounts, clock: Clock
) -> None:
    for number in range(FAILURES_OF_A_NAME):
        accounts.count_attempt("ana" if number % 2 else " ANA", f"address {number}")
        clock.turn(seconds=6)
    with pytest.raises(TooManyFailures, match=r"try again in 14 minutes\.") as caught:
        accounts.count_attempt("ana", "another address")
    accounts.count_attempt("bo", "another address")
    clock.turn(seconds=caught.value.seconds - 2)
    with pytest.raises(TooManyFailures, match=r"try again in 1 minute\."):
        accounts.count_attempt("ana", "another address")
    clock.turn(seconds=2)
    accounts.count_attempt("ana", "another address")
    with pytest.raises(TooManyFailures):
        accounts.count_attempt("ana", "another address")
    clock.turn(days=1)
    accounts.count_attempt("cy", "\0")
    assert rows(accounts, "failed_sign_ins") == 1


def test_an_address_that_tries_many_names_is_slowed_down(accounts: Accounts) -> None:
    for number in range(FAILURES_OF_AN_ADDRESS):
        accounts.count_attempt(f"name {number} " + "x" * number * 10_000, "2001:db8::/64")
    with pytest.raises(TooManyFailures):
        accounts.count_attempt("ana", "2001:db8::/64")
    accounts.count_attempt("ana", "192.0.2.1")


def test_failures_are_forgotten_when_all_went_well(accounts: Accounts) -> None:
    for _ in range(FAILURES_OF_A_NAME):
        accounts.count_attempt("ana", "here")
    accounts.forget_failures("Ana")
    accounts.count_attempt("ana", "here")


def test_guesses_made_at_once_are_no_more_than_those_one_after_the_other(accounts: Accounts) -> None:
    def is_counted(_: int) -> bool:
        try:
            accounts.count_attempt("ana", "here")
        except TooManyFailures:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(is_counted, range(3 * FAILURES_OF_A_NAME))) == FAILURES_OF_A_NAME


def test_of_two_admins_who_remove_each_other_at_once_one_stays(accounts: Accounts) -> None:
    def is_disabled(name: str) -> bool:
        try:
            accounts.disable(name)
        except AccountError:
            return False
        return True

    for number in range(5):
        for name in ("ana", "bo"):
            if number:
                accounts.set_password(name, KEPT)
            else:
                accounts.add(name, "admin", KEPT)
        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(is_disabled, ("ana", "bo"))) == [False, True]


def test_what_is_kept_is_made_anew_unless_the_password_changed_meanwhile(accounts: Accounts) -> None:
    accounts.add("ana", "admin", KEPT)
    accounts.add("bo", "viewer", KEPT)
    session = accounts.open_session("bo")
    accounts.refresh_password("bo", KEPT, "anew")
    assert accounts.password_of("bo") == "anew"
    assert accounts.of_session(session) is not None
    accounts.refresh_password("bo", KEPT, "too late")
    assert accounts.password_of("bo") == "anew"
    assert accounts.password_of("ana") == KEPT


def test_a_password_is_known_again_and_nothing_else_is() -> None:
    kept = CHEAP.hashed("correct horse")
    assert "correct" not in kept
    assert kept != CHEAP.hashed("correct horse")
    assert CHEAP.is_right("correct horse", kept)
    assert not CHEAP.is_right("correct horsf", kept)
    assert not CHEAP.is_right("", kept)
    assert not CHEAP.is_right("nobody's", None)


def test_a_password_is_the_same_from_any_keyboard() -> None:
    composed, apart = "\N{LATIN SMALL LETTER E WITH ACUTE}" * 10, "e\N{COMBINING ACUTE ACCENT}" * 10
    assert CHEAP.is_right(apart, CHEAP.hashed(composed))
    assert CHEAP.is_right("\ud800" * 10, CHEAP.hashed("\ud800" * 10))


@pytest.mark.parametrize(("length", "sentence"), [(9, "at least 10"), (1_001, "at most 1,000")])
def test_a_password_is_neither_short_nor_endless(length: int, sentence: str) -> None:
    with pytest.raises(AccountError, match=sentence) as caught:
        CHEAP.hashed("x" * length)
    assert caught.value.field == "password"


def test_what_follows_a_thousand_characters_is_not_left_out() -> None:
    kept = CHEAP.hashed("x" * 1_000)
    assert CHEAP.is_right("x" * 1_000, kept)
    assert not CHEAP.is_right("x" * 1_001, kept)


def test_what_was_made_at_another_cost_is_outdated_and_still_right() -> None:
    dearer = Passwords(rounds=2, kibibytes=8, lanes=1)
    kept = CHEAP.hashed("correct horse")
    assert dearer.is_right("correct horse", kept)
    assert dearer.is_outdated(kept)
    assert not CHEAP.is_outdated(kept)


def test_without_the_extra_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argon2", None)
    for use in (lambda: Passwords().hashed("correct horse"), lambda: Passwords().is_right("x", None)):
        with pytest.raises(MissingExtra, match=r"install it with pip install 'siteloom\[server\]'"):
            use()
    assert issubclass(AccountError, SiteloomError)
