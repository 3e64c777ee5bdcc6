"""The sample files are the software's own output, and are valid unchanged."""

import configparser
import re
from pathlib import Path

import pytest
from docs.generated import options, rest

from sluice_actors import settings as actors
from sluice_agent import settings as agent
from sluice_block.konnector import settings as konnector
from sluice_controller import config as api
from sluice_controller.app.policy_sample import declared_rules
from sluice_controller.identity.rules import enforcer
from sluice_core.options import read_file
from sluice_motifs_fs import mount as motif_fs
from sluice_motifs_swift import settings as motifs
from sluice_rewriter import settings as rewriter

SAMPLES = Path(__file__).resolve().parents[1] / "configuration" / "sample"
ROOMS = {"api": api, "actors": actors, "agent": agent, "konnector": konnector, "motif-fs": motif_fs}


def test_there_is_nothing_else():
    assert {path.name for path in SAMPLES.iterdir()} == {*options.samples(), *rest.rule_samples()}


@pytest.mark.parametrize("name", ROOMS)
def test_a_sample_names_every_option_and_changes_none(tmp_path, name):
    text = (SAMPLES / f"{name}.conf").read_text()
    defaults = {option.name: option.default for option in ROOMS[name].OPTIONS if not option.is_retired}
    assert read_file(ROOMS[name].OPTIONS, SAMPLES / f"{name}.conf", ROOMS[name].SECTION) == defaults
    head = text.partition("\n#[")[0]
    said = tmp_path / "said.conf"
    said.write_text(re.sub(r"^#(\w+ =)", r"\1", head, flags=re.MULTILINE))
    assert set(re.findall(r"^(\w+) =", said.read_text(), re.MULTILINE)) == set(defaults)
    assert read_file(ROOMS[name].OPTIONS, said, ROOMS[name].SECTION) == defaults


@pytest.mark.parametrize("settings", [rewriter, motifs], ids=["rewriter", "motifs"])
def test_the_sample_of_a_daemon_with_an_application_is_usable_as_it_is(settings):
    defaults = {option.name: option.default for option in settings.OPTIONS}
    sample = SAMPLES / f"{settings.SECTION}.conf"
    assert settings.read_settings(str(sample)) == defaults
    parser = configparser.ConfigParser()
    parser.read(sample)
    names = parser["pipeline:main"]["pipeline"].split()
    assert [f"{kind}:{name}" for kind, name in zip(("filter", "app"), names, strict=True)] == parser.sections()[2:]


def test_a_policy_file_with_every_default_said_is_the_same_as_none(tmp_path):
    text = (SAMPLES / "policy.yaml").read_text()
    said = tmp_path / "policy.yaml"
    said.write_text(re.sub(r'^#"', '"', text, flags=re.MULTILINE))
    rules = declared_rules()
    found, plain = enforcer(str(said)), enforcer()
    assert {name: str(check) for name, check in found.rules.items()} == {
        name: str(check) for name, check in plain.rules.items()
    }
    assert {one.name for one in rules} <= set(found.file_rules)
