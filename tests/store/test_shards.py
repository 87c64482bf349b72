"""Parts of the stored pages, which other processes read without the database."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from siteloom.core.errors import PackError
from siteloom.core.model import Page, Resource
from siteloom.store.store import Store
from tests.store.helpers import StoredPages, page, put

READ = """
import pickle, sys
shards = pickle.load(sys.stdin.buffer)
pages = [page for shard in shards for page in shard.read()]
sys.stdout.buffer.write(pickle.dumps(pages))
"""


def fill(store: Store, count: int = 1_500) -> None:
    """Pages of three sites, some of which changed, and other documents between them."""
    pages = [page(f"http://site{n % 3}.example/{n}", str(n)) for n in range(count)]
    put(store, *pages, Resource("http://site0.example/s.css", b"p{}", "text/css"))
    put(store, *(page(each.url, "changed", 1) for each in pages[::5]))
    put(store, Page("http://site1.example/latin", b"<p>\xe9</p>", None, "latin-1"))


def test_the_shards_one_after_the_other_are_the_pages_in_their_order(store: Store) -> None:
    fill(store)
    for source in (StoredPages(store), StoredPages(store, "site1.example")):
        whole = list(source.read())
        shards = source.shards()
        assert list(chain.from_iterable(shard.read() for shard in shards)) == whole
        assert list(shards[0].read()) == list(shards[0].read())
    assert len(StoredPages(store).shards()) > 1


def test_shards_are_of_some_hundreds_of_pages_and_of_whole_blocks(store: Store) -> None:
    put(store, *(page(f"http://a.example/{n}", str(n)) for n in range(3_000)))
    shards = StoredPages(store).shards()
    sizes = [sum(1 for _ in shard.read()) for shard in shards]
    assert sizes == [512] * 5 + [440]
    blocks = [(block.file, block.offset) for shard in shards for block in shard.blocks]
    assert len(set(blocks)) == len(blocks)


def test_without_pages_there_are_no_shards(store: Store) -> None:
    assert list(StoredPages(store).shards()) == []
    fill(store, 10)
    assert list(StoredPages(store, "none.example").shards()) == []


def test_the_shards_are_the_same_each_time(store: Store) -> None:
    fill(store)
    assert StoredPages(store).shards() == StoredPages(store).shards()


def test_a_shard_is_its_own_only_shard(store: Store) -> None:
    fill(store, 10)
    (shard,) = StoredPages(store).shards()
    assert list(shard.shards()) == [shard]


def test_a_shard_comes_through_pickle_small(store: Store) -> None:
    fill(store)
    for shard in StoredPages(store).shards():
        pickled = pickle.dumps(shard)
        assert pickle.loads(pickled) == shard
        assert len(pickled) < 10_000


def test_another_process_reads_the_shards_without_the_tables(store: Store, tmp_path: Path) -> None:
    fill(store)
    source = StoredPages(store)
    shards = source.shards()
    whole = list(source.read())
    store.close()
    (store.folder / "siteloom.db").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input=pickle.dumps(shards),
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    assert pickle.loads(done.stdout) == whole


def test_shards_are_those_of_the_moment_when_they_were_made(store: Store) -> None:
    fill(store)
    whole = list(store.pages())
    shards = StoredPages(store).shards()
    put(store, *(page(each.url, "later", 9) for each in whole[:700]), page("http://new.example/"))
    assert [each for shard in shards for each in shard.read()] == whole


def test_a_pack_that_is_gone_is_named(store: Store) -> None:
    fill(store, 10)
    (shard,) = StoredPages(store).shards()
    shutil.rmtree(shard.packs_folder)
    with pytest.raises(PackError, match=r"000001\.pack cannot be opened"):
        list(shard.read())
