"""Signing in and out, one's own account, and all accounts."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from lxml import html

from siteloom.store.queries.accounts import FAILURES_OF_A_NAME, FAILURES_OF_AN_ADDRESS, Passwords
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.store.helpers import Clock

LONG = "a long enough password"


def beside(page: str, field: str) -> str:
    """The sentence that a field of a form is described by."""
    tree = html.fromstring(page)
    (sentence,) = tree.xpath(
        "//*[@id = //*[@name=$name and @aria-invalid='true']/@aria-describedby]", name=field
    )
    return str(sentence.text_content())


def test_signing_in_leads_to_where_one_wanted_to_be(people: People) -> None:
    browser = Browser(people.app)
    asked = browser.get("/settings/accounts?name=x")
    assert "Sign in" in browser.look(asked.headers["location"])
    (wanted,) = html.fromstring(browser.get(asked.headers["location"]).text).xpath(
        "//input[@name='next']/@value"
    )
    answer = browser.post("/sign-in", {"name": " Ana", "password": people.password("ana"), "next": wanted})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/settings/accounts?name=x"
    assert "signed in as ana" in browser.look("/settings")
    assert browser.get("/sign-in?next=/settings").headers["location"] == "/settings"


def test_signing_in_leads_nowhere_else(people: People) -> None:
    browser = Browser(people.app)
    for other in ("https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example", "evil"):
        answer = browser.sign_in("ana", people.password("ana"), next=other)
        assert answer.headers["location"] == "/"
        assert browser.get(f"/sign-in?next={quote(other)}").headers["location"] == "/"
        browser.post("/sign-out", {})


def test_a_wrong_password_and_an_unknown_name_are_told_alike(people: People) -> None:
    people.add("bo", "viewer")
    people.store.accounts.disable("bo")
    told = set()
    for name in ("ana", "bo", "nobody", "x" * 1_000, "\0", "<b>"):
        browser = Browser(people.app)
        answer = browser.sign_in(name, "not the password")
        assert answer.status_code == 401
        assert "not the password" not in html.fromstring(answer.text).xpath("//input/@value")
        (typed,) = html.fromstring(answer.text).xpath("//input[@name='name']/@value")
        assert typed == name.replace("\0", "\N{REPLACEMENT CHARACTER}") or name == "\0"
        told.add(beside(answer.text, "password"))
        assert browser.get("/api/me").status_code == 401
    assert told == {"This is not the password of an account of this name."}


def test_after_ten_wrong_passwords_even_the_right_one_has_to_wait(people: People, clock: Clock) -> None:
    for number in range(FAILURES_OF_A_NAME):
        browser = Browser(people.app, address=f"192.0.2.{number}")
        assert browser.sign_in("ana", f"wrong {number}").status_code == 401
    refused = browser.sign_in("ana", people.password("ana"))
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == str(15 * 60 + 1)
    assert beside(refused.text, "password") == "Too many wrong passwords: try again in 15 minutes."
    clock.turn(minutes=15)
    assert browser.sign_in("ana", people.password("ana")).status_code == 303


def test_all_addresses_of_a_network_count_as_one(people: People) -> None:
    for number in range(FAILURES_OF_AN_ADDRESS):
        people.store.accounts.count_attempt(f"name-{number}", "2001:db8::/64")
    near, far = (Browser(people.app, address=address) for address in ("2001:db8::1:2", "2001:db8:0:1::1"))
    assert near.sign_in("ana", people.password("ana")).status_code == 429
    assert far.sign_in("ana", people.password("ana")).status_code == 303


def test_what_is_kept_of_a_password_follows_its_cost(people: People) -> None:
    before = people.store.accounts.password_of("ana")
    dearer = Passwords(rounds=2, kibibytes=8, lanes=1)
    people.app.state.services = replace(people.app.state.services, passwords=dearer)
    assert people.browser("ana", "admin").get("/api/me").status_code == 200
    after = people.store.accounts.password_of("ana")
    assert after is not None
    assert after != before
    assert not dearer.is_outdated(after)
    people.browser("ana", "admin")
    assert people.store.accounts.password_of("ana") == after


def test_signing_out_ends_the_session_and_not_only_the_cookie(people: People) -> None:
    browser = people.browser("ana", "admin")
    other = people.browser("ana", "admin")
    kept = browser.cookies["siteloom"]
    assert browser.post("/sign-out", {}).headers["location"] == "/"
    assert browser.get("/api/me").status_code == 401
    assert people.store.accounts.of_session(kept) is None
    assert other.get("/api/me").status_code == 200


def test_no_other_page_can_sign_anyone_in_or_out(people: People) -> None:
    browser = people.browser("ana", "admin")
    assert browser.ask("POST", "/sign-out", data={}).status_code == 403
    assert browser.get("/api/me").status_code == 200
    form = {"name": "ana", "password": people.password("ana")}
    assert Browser(people.app).ask("POST", "/sign-in", data=form).status_code == 403


def test_changing_ones_password_takes_the_old_one_and_signs_all_others_out(people: People) -> None:
    browser, other = people.browser("ana", "admin"), people.browser("ana", "admin")
    wrong = browser.post("/settings/password", {"current": "wrong", "password": LONG})
    assert wrong.status_code == 422
    assert beside(wrong.text, "current") == "This is not your password."
    short = browser.post("/settings/password", {"current": people.password("ana"), "password": "short"})
    assert beside(short.text, "password") == "A password has at least 10 characters."
    assert other.get("/api/me").status_code == 200
    form = {"current": people.password("ana"), "password": LONG}
    changed = browser.post("/settings/password", form)
    assert changed.status_code == 303
    assert "Your password is changed" in browser.look(changed.headers["location"])
    assert other.get("/api/me").status_code == 401
    assert Browser(people.app).sign_in("ana", people.password("ana")).status_code == 401
    assert Browser(people.app).sign_in("ana", LONG).status_code == 303


def test_passwords_are_not_guessed_through_the_settings_either(people: People) -> None:
    browser = people.browser("ana", "admin")
    form = {"current": "wrong", "password": LONG}
    answers = [browser.post("/settings/password", form) for _ in range(FAILURES_OF_A_NAME + 1)]
    assert [answer.status_code for answer in answers] == [422] * FAILURES_OF_A_NAME + [429]
    assert "retry-after" in answers[-1].headers
    changed = browser.send("PUT", "/api/me/password", {"current": people.password("ana"), "new": LONG})
    assert changed.status_code == 429
    assert "retry-after" in changed.headers


def test_a_key_is_shown_once_works_and_is_revoked(people: People) -> None:
    browser = people.browser("bo", "editor")
    made = browser.post("/settings/keys", {"label": "nightly <export>"})
    (key,) = html.fromstring(made.text).xpath("//pre/text()")
    program = Browser(people.app)
    assert program.get("/api/me", authorization=f"Bearer {key}").json()["name"] == "bo"
    assert "nightly <export>" in browser.look("/settings")
    assert key not in browser.get("/settings").text
    (revoke,) = html.fromstring(browser.get("/settings").text).xpath(
        "//form[contains(@action, 'revoke')]/@action"
    )
    assert people.browser("ana", "admin").post(revoke, {}).status_code == 303
    assert program.get("/api/me", authorization=f"Bearer {key}").status_code == 200
    assert "opens nothing any more" in browser.look(browser.post(revoke, {}).headers["location"])
    assert program.get("/api/me", authorization=f"Bearer {key}").status_code == 401
    unnamed = browser.post("/settings/keys", {"label": " "})
    assert unnamed.status_code == 422
    assert "what the key is for" in beside(unnamed.text, "label")


def test_the_first_account_is_made_in_the_browser(app: FastAPI, empty_store: Store) -> None:
    browser = Browser(app)
    assert browser.get("/sign-in?next=/settings").headers["location"] == "/settings"
    assert "You work without an account" in browser.look("/settings")
    assert "no account yet" in browser.look("/settings/accounts")
    less = browser.post("/settings/accounts", {"name": "ana", "role": "viewer", "password": LONG})
    assert less.status_code == 422
    assert "The first account must be an admin." in less.text
    made = browser.post("/settings/accounts", {"name": "ana", "role": "admin", "password": LONG})
    assert made.status_code == 303
    assert browser.get(made.headers["location"]).headers["location"].startswith("/sign-in?next=")
    assert browser.sign_in("ana", LONG).status_code == 303
    assert empty_store.accounts.any_enabled()


def test_an_admin_manages_accounts(people: People) -> None:
    ana = people.browser("ana", "admin")
    page = "/settings/accounts"
    ana.look(page)
    made = ana.post(page, {"name": "Bo", "role": "viewer", "password": LONG})
    assert "The account bo is there." in ana.look(made.headers["location"])
    bo = Browser(people.app)
    bo.sign_in("bo", LONG)
    done = ana.post(f"{page}/bo/role", {"role": "editor"})
    assert "bo has another role, and is signed out everywhere." in ana.look(done.headers["location"])
    assert bo.get("/api/me").status_code == 401
    bo.sign_in("bo", LONG)
    assert bo.get("/api/me").json()["role"] == "editor"
    done = ana.post(f"{page}/bo/password", {"password": "another password"})
    assert "bo has another password" in ana.look(done.headers["location"])
    assert bo.get("/api/me").status_code == 401
    assert bo.sign_in("bo", "another password").status_code == 303
    done = ana.post(f"{page}/bo/disable", {})
    assert "bo cannot sign in any more" in ana.look(done.headers["location"])
    assert bo.get("/api/me").status_code == 401
    ana.post(f"{page}/bo/password", {"password": LONG})
    assert bo.sign_in("bo", LONG).status_code == 303
    for action in ("role", "password", "disable"):
        assert ana.post(f"{page}/cy/{action}", {}).status_code == 404
    assert "<script>" not in ana.get(f"{page}?done=added&name=<script>").text


def test_what_is_wrong_with_a_new_account_stands_beside_it_and_what_was_typed_stays(people: People) -> None:
    ana = people.browser("ana", "admin")
    for form, field, sentence in (
        ({"name": "a b", "role": "viewer", "password": LONG}, "name", "letters, digits"),
        ({"name": "ANA", "role": "viewer", "password": LONG}, "name", "There is an account ana already."),
        ({"name": "bo", "role": "viewer", "password": "short"}, "password", "at least 10"),
    ):
        answer = ana.post("/settings/accounts", form)
        assert answer.status_code == 422
        assert sentence in beside(answer.text, field)
        add = html.fromstring(answer.text).xpath("//form[@action='/settings/accounts']")[0]
        assert add.xpath(".//input[@name='name']/@value") == [form["name"]]
        assert add.xpath(".//option[@selected]/text()") == ["viewer"]
        assert add.xpath(".//input[@name='password']/@value") == []
    answer = ana.post("/settings/accounts", {"name": "bo", "role": "king", "password": LONG})
    assert "There is no such role: it is one of viewer, editor, admin." in answer.text
    assert [account.name for account in people.store.accounts.all()] == ["ana"]


def test_the_last_admin_stays_and_is_told_why(people: People) -> None:
    people.add("bo", "editor")
    ana = people.browser("ana", "admin")
    for action, form in (("role", {"role": "viewer"}), ("disable", {})):
        answer = ana.post(f"/settings/accounts/ana/{action}", form)
        assert answer.status_code == 422
        assert "ana is the last admin, and must stay one." in answer.text
    assert ana.send("PATCH", "/api/accounts/ana", {"role": "viewer"}).status_code == 422
    assert ana.send("DELETE", "/api/accounts/ana").status_code == 422
    people.store.accounts.set_role("bo", "admin")
    assert ana.post("/settings/accounts/ana/role", {"role": "viewer"}).headers["location"] == "/settings"
    assert ana.get("/settings/accounts").status_code == 403


def test_an_admin_who_changes_their_own_password_stays_signed_in(people: People) -> None:
    ana, elsewhere = people.browser("ana", "admin"), people.browser("ana", "admin")
    ana.post("/settings/accounts/ana/password", {"password": LONG})
    assert ana.get("/api/me").status_code == 200
    assert elsewhere.get("/api/me").status_code == 401


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_no_one_else_manages_accounts(people: People, role: str) -> None:
    browser = people.browser(role, "viewer" if role == "viewer" else "editor")
    page = "/settings/accounts"
    assert browser.get(page).status_code == 403
    assert "All accounts" not in browser.look("/settings")
    for path in (page, f"{page}/ana/role", f"{page}/ana/password", f"{page}/ana/disable"):
        assert browser.post(path, {"name": "x", "role": "admin", "password": LONG}).status_code == 403
    assert browser.get("/api/accounts").status_code == 403
    assert browser.send("POST", "/api/accounts", {"name": "x", "password": LONG}).status_code == 403
    assert browser.send("PATCH", f"/api/accounts/{role}", {"role": "admin"}).status_code == 403
    assert browser.send("DELETE", "/api/accounts/ana").status_code == 403
    assert [account.name for account in people.store.accounts.all()] == ["ana", role]


def test_accounts_through_the_api(people: People) -> None:
    ana = people.browser("ana", "admin")
    made = ana.send("POST", "/api/accounts", {"name": "Bo", "password": LONG})
    assert made.status_code == 201
    assert (made.json()["name"], made.json()["role"], made.json()["is_enabled"]) == ("bo", "editor", True)
    assert LONG not in made.text
    bo = Browser(people.app)
    assert bo.sign_in("bo", LONG).status_code == 303
    changed = ana.send("PATCH", "/api/accounts/bo", {"role": "viewer"})
    assert changed.json()["role"] == "viewer"
    assert bo.get("/api/me").status_code == 401
    assert bo.sign_in("bo", LONG).status_code == 303
    assert bo.get("/api/me").json()["role"] == "viewer"
    short = ana.send("PATCH", "/api/accounts/bo", {"role": "admin", "password": "short"})
    assert short.status_code == 422
    assert bo.get("/api/me").json()["role"] == "viewer"
    assert ana.send("DELETE", "/api/accounts/bo").status_code == 204
    assert bo.get("/api/me").status_code == 401
    assert [account["is_enabled"] for account in ana.get("/api/accounts").json()] == [True, False]
    assert ana.send("PATCH", "/api/accounts/bo", {"password": LONG}).json()["is_enabled"]
    assert ana.send("PATCH", "/api/accounts/cy", {"role": "viewer"}).status_code == 404
    assert ana.send("DELETE", "/api/accounts/cy").status_code == 404
    assert ana.send("POST", "/api/accounts", {"name": "bo", "password": LONG}).status_code == 422
    assert (
        ana.send("POST", "/api/accounts", {"name": "cy", "password": LONG, "role": "king"}).status_code == 422
    )


def test_keys_and_ones_password_through_the_api(people: People) -> None:
    bo, ana = people.browser("bo", "viewer"), people.browser("ana", "admin")
    key = bo.send("POST", "/api/keys", {"label": "export"}).json()["key"]
    program = Browser(people.app)
    bearer = {"Authorization": f"Bearer {key}"}
    assert program.ask("GET", "/api/me", headers=bearer).json()["csrf"] == ""
    (known,) = bo.get("/api/keys").json()
    assert known["label"] == "export"
    assert known["last_used_at"] is not None
    assert ana.get("/api/keys").json() == []
    assert ana.send("DELETE", f"/api/keys/{known['id']}").status_code == 404
    change = {"current": people.password("bo"), "new": LONG}
    assert program.ask("PUT", "/api/me/password", headers=bearer, json=change).status_code == 204
    assert not program.cookies
    assert bo.get("/api/me").status_code == 401
    wrong = program.ask("PUT", "/api/me/password", headers=bearer, json=change)
    assert wrong.status_code == 403
    assert bo.sign_in("bo", LONG).status_code == 303
    assert bo.send("DELETE", f"/api/keys/{known['id']}").status_code == 204
    assert program.ask("GET", "/api/me", headers=bearer).status_code == 401
    assert bo.send("POST", "/api/keys", {"label": ""}).status_code == 422


def test_whoever_has_no_account_has_no_keys(app: FastAPI) -> None:
    browser = Browser(app)
    browser.look("/settings")
    assert browser.post("/settings/keys", {"label": "export"}).status_code == 422
    assert browser.send("POST", "/api/keys", {"label": "export"}).status_code == 422
    browser.post("/sign-out", {})
    assert browser.get("/api/me").json()["name"] == "local"
