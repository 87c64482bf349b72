"""Peers that fail are told apart from those that answer, and counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from evals import css_selectors, learning_runs, mlscraper_peer, peers
from evals.peers import Peer, PeerFailed
from evals.swde import SwdeSite

PEER = Peer("fake", ("fake==1.0", "other==2"), "fake", "fake")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Environments and workers in a folder of the test's own."""
    monkeypatch.setattr(peers, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(peers, "WORKERS", tmp_path)
    return tmp_path


def install(folder: Path, peer: Peer, worker: str) -> None:
    """A peer whose environment is there, and its worker."""
    programs = folder / f"venv-{peer.name}" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs.parent / ".installed").write_text(" ".join(peer.requirements), encoding="utf-8")
    (folder / f"{peer.worker}_worker.py").write_text(worker, encoding="utf-8")


def test_a_peer_answers(places: Path) -> None:
    install(places, PEER, "import json, sys; json.dump(json.load(sys.stdin)[::-1], sys.stdout)")
    assert PEER.answer([1, 2]) == [2, 1]
    assert PEER.version == "fake 1.0 with other 2"


def test_a_peer_that_fails_says_why(places: Path) -> None:
    install(places, PEER, "raise ValueError('it is broken')")
    with pytest.raises(PeerFailed, match=r"^ValueError: it is broken$"):
        PEER.answer({})


def test_a_peer_that_answers_nonsense_fails(places: Path) -> None:
    install(places, PEER, "print('no JSON')")
    with pytest.raises(PeerFailed):
        PEER.answer({})


def test_a_peer_that_hangs_is_ended(places: Path) -> None:
    install(places, PEER, "import time; time.sleep(60)")
    with pytest.raises(PeerFailed, match=r"no answer in 0\.5 s"):
        PEER.answer({}, seconds=0.5)


def test_a_peer_that_cannot_be_installed_fails(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(places / "no-python"))
    with pytest.raises(PeerFailed, match=r"could not be installed: .*no-python"):
        PEER.answer({})


def test_learners_that_fail_are_counted_and_others_go_on(places: Path) -> None:
    site_folder = places / "pages"
    site_folder.mkdir()
    truth = {}
    for number in range(8):
        page = f'<base href="http://x.example/{number}"/><h1 class=name>Desk {number}</h1><p>Nothing</p>'
        (site_folder / f"{number:04}.htm").write_text(page, encoding="utf-8")
        truth[f"{number:04}"] = {"name": (f"Desk {number}",)}
    site = SwdeSite("shop", "x", site_folder, truth)
    install(places, mlscraper_peer.PEER, "raise SystemExit('out of order')")
    plan: learning_runs.Plan = {css_selectors.NAME: (1, 2), mlscraper_peer.NAME: (1, 2)}
    result = learning_runs.run_site(learning_runs.Task(site, plan))
    assert result.failed == [
        learning_runs.Failed(mlscraper_peer.NAME, 1, "out of order"),
        learning_runs.Failed(mlscraper_peer.NAME, 2, "out of order"),
    ]
    assert {(row.method, row.strict) for row in result.rows} == {("css", 1.0), ("mlscraper", 0.0)}
