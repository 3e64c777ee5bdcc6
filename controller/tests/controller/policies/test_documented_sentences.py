"""``sluice-dsl check`` and the API give the same result for every sentence of the documentation.

The API's cluster runs a motif daemon and has the volumes of the pages; nothing is registered on it.
"""

import io
import re
from pathlib import Path

import pytest

from sluice_core.store.operation import Operation
from sluice_dsl.cli import main
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax.grammar import parse
from sluice_motif_control.calls import announce
from sluice_motif_control.messages import MotifDaemon
from sluice_motifs.runtime_calls import described_templates
from sluice_motifs.templates.registry import load_templates
from sluice_volumes.messages import VolumeRecord

ROOT = Path(__file__).resolve().parents[4]
PAGES = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/*.md")]
#: A block of sentences, an indented one, and one in quotes: of a command, of JSON, of running text.
FORMS = (
    re.compile(r"^```sluice\n(?P<text>.*?)^```", re.M | re.S),
    re.compile(r"(?P<text>(?:^ {4}FOR .*\n)+)", re.M),
    re.compile(r"""(?P<quote>['"`])(?P<text>FOR [^\n]*? DO [^\n]*?)(?P=quote)"""),
)
VOLUMES = ("data1",)


def documented():
    """Each text on a page, and each sentence of a text with several."""
    found = {}
    for page in sorted(set(PAGES)):
        for form in FORMS:
            for one in form.finditer(page.read_text(encoding="utf-8")):
                text = one["text"]
                spans = [sentence.span for sentence in parse(text, Reporter(text))]
                for each in (text, *(text[start:end] for start, end in spans)):
                    found.setdefault(each.strip(), page.relative_to(ROOT))
    return [pytest.param(text, id=f"{page}-{number}") for number, (text, page) in enumerate(found.items())]


SENTENCES = documented()


@pytest.fixture
def whole_cluster(backend):
    """A motif daemon runs, and volumes exist."""
    keys = backend.store.keys
    templates = described_templates(load_templates())
    backend.store.run(announce(keys, MotifDaemon("d1", "n1", templates=templates)))
    for number, name in enumerate(VOLUMES):
        volume = VolumeRecord(f"id-{number}", "acme", "acme", name)
        backend.store.run(Operation((("HSET", keys.volumes, volume.id, volume.encode()),), bool))
    return backend


def printed(problem):
    """A problem of an answer in the form that the command prints."""
    shown = "\n".join("  " + line for line in problem["caret"].split("\n"))
    return f"{problem['severity']}: line {problem['line']}, column {problem['column']}: {problem['message']}\n{shown}\n"


def said_online(api, text):
    """The verdict, and all problems of ``text``."""
    answer = api.post("/policies/check", {"policy": text}, format="json")
    body = answer.json()
    if answer.status_code == 200:
        return 0, "".join(printed(one) for policy in body["policies"] for one in policy["warnings"])
    assert answer.status_code in (400, 409), body
    return 1, "".join(map(printed, body["error"]["problems"]))


def test_the_documentation_has_sentences_of_every_sort():
    together = "\n".join(one.values[0] for one in SENTENCES)
    assert len(SENTENCES) > 120
    for word in ("elasticity", "motif WITH", "FOR VOLUME", "FREE_SPACE", "bandwidth", "FOR GROUP", "csv_select"):
        assert word in together


@pytest.mark.parametrize("text", SENTENCES)
def test_the_command_and_the_api_say_the_same_of_a_documented_sentence(text, api, whole_cluster, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    verdict = main(["check", "-"])
    assert (verdict, capsys.readouterr().err) == said_online(api, text)


def test_the_sentences_of_the_readme_are_accepted(capsys):
    (block,) = re.findall(r"(?:^ {4}FOR .*\n)+", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    for text in block.strip().splitlines():
        assert main(["explain", text.strip()]) == 0
    assert capsys.readouterr().err == ""
