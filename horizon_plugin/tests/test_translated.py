"""All texts of pages use gettext."""

import re
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "sluice_dashboard"
TEMPLATES = sorted(PLUGIN.rglob("templates/**/*.html"))
TRANSLATED = re.compile(r"{%\s*blocktrans.*?{%\s*endblocktrans\s*%}", re.DOTALL)
CODE = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}|{%\s*comment.*?endcomment\s*%}", re.DOTALL)
#: Attributes with texts for users.
SAID = re.compile(r'\s(?:aria-label|alt|placeholder|title)="([^"]*)"')
ELEMENT = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
WORD = re.compile(r"[^\W\d_]{2,}")


def untranslated(text):
    """Untranslated words of a template."""
    text = CODE.sub("", TRANSLATED.sub("", text))
    return WORD.findall(" ".join([*SAID.findall(text), re.sub(r"&\w+;", "", ELEMENT.sub(" ", text))]))


def test_words_beside_gettext_are_found():
    assert untranslated('<p title="one {{ x }}">{% trans "two" %} three &amp; {{ four }}</p>') == ["one", "three"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_all_words_of_a_template_are_translated(path):
    assert untranslated(path.read_text(encoding="utf-8")) == []
