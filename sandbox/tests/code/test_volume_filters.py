"""The registration of a filter of volumes."""

import pytest

from sluice_code.code_store import BadUpload
from sluice_code.volume_filters import describe_volume_filter
from sluice_core.describe import KONNECTOR, NBDKIT, VOLUMES
from sluice_core.messages.uploads import Upload

KEY = {"name": "rot-by", "type": "int", "default": 13}


def upload(keyword="rot", reverse=True, **info):
    return Upload(keyword, NBDKIT, "", "", "", 0, reverse=reverse, info=info)


def test_a_filter_of_volumes_is_about_volumes_alone_and_runs_at_the_konnector():
    info = describe_volume_filter(upload(parameters=[KEY], help="adds a number"))
    assert (info.about, info.places, info.environment) == ((VOLUMES,), (KONNECTOR,), NBDKIT)
    assert (info.changes_content, info.reversible, info.help) == (True, True, "adds a number")
    assert info.parameter("rot-by").default == 13


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (upload("Rot"), "keyword `Rot`, expected lower case"),
        (upload("luks"), "`luks` is a filter that konnectors have already"),
        (upload(stage=3), "`stage` is nothing a filter of volumes can declare"),
        (upload(reverse=False, changes_content=True), "the volume could not be read, expected `reverse`"),
        (upload(changes_content="yes"), "`changes_content` is `yes`, expected true or false"),
        (upload(parameters=[{"name": "--filter", "type": "str"}]), "parameter `--filter` of filter `rot`"),
        (upload(parameters=[{"name": "size", "type": "size"}]), "parameter `size` of filter `rot` is of type `size`"),
        (upload(parameters=[{"colour": 1}]), "description of filter `rot`"),
    ],
)
def test_what_it_cannot_be_is_refused_with_the_reason(wrong, reason):
    with pytest.raises(BadUpload, match=reason):
        describe_volume_filter(wrong)
