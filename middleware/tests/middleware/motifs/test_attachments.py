"""The forms of ``X-Object-Motif``, and the errors for other values."""

import json

import pytest

from sluice_filters.api import BadParameter
from sluice_middleware.motifs.attachments import parse_attachments
from sluice_motifs.templates.registry import load_templates

TEMPLATES = load_templates()
CONCAT = {"template": "concat", "params": {"of": "a/c/1,a/c/2"}}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (json.dumps([CONCAT]), [CONCAT]),
        (json.dumps([CONCAT, {"template": "other"}]), [CONCAT, {"template": "other", "params": {}}]),
        ("[]", []),
        ("concat; of=a/c/1,a/c/2", [CONCAT]),
        (" concat ;of = a/c/1,a/c/2 ;", [CONCAT]),
        ("concat; of=a/c/%C3%BC", [{"template": "concat", "params": {"of": "a/c/ü"}}]),
        ("compressed; of=a/c/1; level=3", [{"template": "compressed", "params": {"of": "a/c/1", "level": 3}}]),
        ("unknown; level=3", [{"template": "unknown", "params": {"level": "3"}}]),
    ],
)
def test_motifs_are_read(written, found):
    assert list(parse_attachments(written, TEMPLATES)) == found


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "names no template"),
        ("; of=a", "names no template"),
        ("concat; of", "has `of`"),
        ("[{]", "is no JSON"),
        ("[1]", "has `1`"),
        ('[{"template": 1}]', "expected `template"),
        ('[{"template": "concat", "parms": {}}]', "expected `template"),
        ('[{"template": "concat", "params": {"of": []}}]', "expected `template"),
        (json.dumps([CONCAT] * 5), "5 motifs, expected at most 4"),
        ("compressed; level=high", "expected a int"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_what_is_no_motif_is_refused(written, reason):
    with pytest.raises(BadParameter, match=reason):
        parse_attachments(written, TEMPLATES)
