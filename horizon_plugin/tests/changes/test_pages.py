import pytest

from sluice_dashboard.changes.pages import change_row, difference_row


def change(**changes):
    kinds = {name: [] for name in ("policies", "filters", "metrics", "controllers", "entries")}
    return {"epoch": 3, "set": 0, "taken_back": 0, **kinds, **changes}


def test_a_change_names_some_of_what_it_is_about_and_counts_the_rest():
    row = change_row(change(policies=list("abcde"), entries=["term/docs"], set=1, taken_back=2))
    assert row.about == ("policy a", "policy b", "policy c", "and 2 more", "registry: term/docs")
    assert row.assignments == "1 assignment set, 2 taken back"


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (None, {"policy": "FOR CLUSTER DO SET noop", "enabled": False}, ("", "FOR CLUSTER DO SET noop (disabled)")),
        ({"members": ["b", "a"]}, None, ('{\n  "members": [\n    "b",\n    "a"\n  ]\n}', "")),
    ],
)
def test_what_stood_and_what_stands_is_text(before, after, texts):
    row = difference_row({"what": "policy", "name": "p", "how": "replace", "before": before, "after": after})
    assert (row.what, row.how, row.before, row.after) == ("policy", "changed", *texts)
