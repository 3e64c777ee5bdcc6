"""The files that a mount watches."""

from sluice_motifs_fs.file_runtime import ItemIndex


def test_items_and_their_sources_are_watched_until_they_are_none():
    index = ItemIndex()
    index.put("items/one", 1, ["sources/a", "sources/b"])
    index.put("items/two", 2, ["sources/a"])
    assert all(map(index.watches, ("items/one", "items/two", "sources/a", "sources/b")))
    assert index.readers("sources/a") == {"items/one", "items/two"}
    index.put("items/one", 3, ["sources/b"])
    assert index.readers("sources/a") == {"items/two"}
    index.remove("items/one")
    assert not index.watches("sources/b")
    assert index.items == {"items/two": 2}


def test_a_rename_concerns_what_is_below_a_folder():
    index = ItemIndex()
    index.put("items/one", 1, ["sources/a"])
    assert index.concerns("items", "moved")
    assert index.concerns("sources", "moved")
    assert index.concerns("other", "sources/a")
    assert not index.concerns("item", "moved")
    assert (index.items_below("items"), index.sources_below("sources")) == (["items/one"], ["sources/a"])
