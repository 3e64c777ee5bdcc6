"""The catalogue of gettext has the texts of all pages, and no other; all texts of Python and scripts use gettext."""

import ast
import re
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

PLUGIN = Path(__file__).parents[1] / "sluice_dashboard"
CATALOGUE = PLUGIN / "locale" / "en" / "LC_MESSAGES" / "django.po"
MODULES = sorted(PLUGIN.rglob("*.py"))
SCRIPTS = sorted((PLUGIN / "static" / "sluice_dashboard" / "js").glob("*.js"))
#: Functions that xgettext knows → the number of arguments before the text.
GETTEXT = {
    "_": 0,
    "gettext": 0,
    "gettext_lazy": 0,
    "ngettext": 0,
    "ngettext_lazy": 0,
    "pgettext": 1,
    "pgettext_lazy": 1,
}
LITERAL = r"""(u?"(?:[^"\\]|\\.)*"|u?'(?:[^'\\]|\\.)*')"""
CALL = re.compile(rf"\b(?:_|gettext|ngettext)\(\s*{LITERAL}(?:,\s*{LITERAL})?")
ENTRY = re.compile(r'^msgid(?:_plural)? ((?:".*"\n)+)', re.MULTILINE)
#: Words with a blank between them.
SENTENCE = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,}")
#: Classes and ids of HTML, and sentences of the language, which are not translated.
NOT_READ = re.compile(r"[a-z0-9 .,-]*-[a-z0-9 .,-]*|FOR [A-Z]+ .*")
ELEMENT = re.compile(r"<[^>]*>")
#: Texts for users, even if they are a single word.
READ = {"page_title", "submit_label", "name", "title", "label", "help_text"}


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GETTEXT:
            yield node


def texts_of_module(text):
    """The texts that a Python module passes to gettext."""
    for call in calls(ast.parse(text)):
        texts = call.args[GETTEXT[call.func.id] :]
        yield from (one.value for one in texts if isinstance(one, ast.Constant) and isinstance(one.value, str))


def texts_of_template(text):
    """The texts that a template passes to gettext."""
    for literals in CALL.findall(templatize(text)):
        yield from (ast.literal_eval(one) for one in literals if one)


def beside_gettext(text):
    """Texts of a module for users that are not translated: without docstrings and error texts."""
    tree = ast.parse(text)
    fine = {id(part) for call in calls(tree) for part in ast.walk(call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            fine |= {id(part) for part in ast.walk(node)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    texts = [one.value for one in texts if id(one) not in fine]
    found = [text for text in texts if is_read(text)]
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in {"label", "help_text"}:
            found += single_word(node.value)
        elif isinstance(node, ast.ClassDef):
            assigned = [one for one in node.body if isinstance(one, ast.Assign)]
            found += [word for one in assigned if READ & names(one) for word in single_word(one.value)]
    return found


def is_read(text):
    return bool(SENTENCE.search(ELEMENT.sub("", text))) and not NOT_READ.fullmatch(text)


def names(assign):
    return {target.id for target in assign.targets if isinstance(target, ast.Name)}


def single_word(node):
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value else []


def test_the_catalogue_has_the_texts_of_all_pages():
    """If it fails, run the command of horizon_plugin/README.md."""
    used = {text for path in MODULES for text in texts_of_module(path.read_text(encoding="utf-8"))}
    for path in PLUGIN.rglob("templates/**/*.html"):
        used |= set(texts_of_template(path.read_text(encoding="utf-8")))
    entries = ENTRY.findall(CATALOGUE.read_text(encoding="utf-8"))
    known = {ast.literal_eval(f"({one})") for one in entries} - {""}
    assert (sorted(used - known), sorted(known - used)) == ([], [])


def test_texts_beside_gettext_are_found():
    module = '"""A head."""\nclass A:\n    name = "Nodes"\n    title = _("of nodes")\n    x = f"is {y} lost now"\n'
    assert beside_gettext(module) == [" lost now", "Nodes"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_no_text_of_a_module_is_beside_gettext(path):
    assert beside_gettext(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_say_nothing_of_their_own(path):
    code = re.sub(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [one for one in re.findall(LITERAL, code) if is_read(one[1:-1]) and one != '"use strict"'] == []
