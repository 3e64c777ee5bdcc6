"""`.zuul.yaml`: it has the form of Zuul's documentation, and all that its jobs name exists."""

import configparser
import itertools
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
#: Parent jobs of OpenStack's and OpenDev's repositories.
THEIRS = {"openstack-tox", "devstack-minimal", "devstack-tempest"}
#: Roles of DevStack's repository that the playbooks use.
THEIR_ROLES = {"run-devstack"}

WORDS = {"type": "array", "items": {"type": "string"}}
WORD_OR_WORDS = {"anyOf": [{"type": "string"}, WORDS]}
PROJECT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "override-checkout": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
#: The attributes of a job that are used; Zuul has others, which this test does not check.
JOB = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "parent": {"type": "string"},
        "abstract": {"type": "boolean"},
        "description": {"type": "string"},
        "nodeset": {"type": "string"},
        "timeout": {"type": "integer", "minimum": 1},
        "pre-run": WORD_OR_WORDS,
        "run": WORD_OR_WORDS,
        "post-run": WORD_OR_WORDS,
        "roles": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"zuul": {"type": "string"}},
                "required": ["zuul"],
                "additionalProperties": False,
            },
        },
        "required-projects": {"type": "array", "items": {"anyOf": [{"type": "string"}, PROJECT]}},
        "irrelevant-files": WORDS,
        # names of Ansible's variables
        "vars": {"type": "object", "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}},
    },
    "required": ["name", "parent"],
    "additionalProperties": False,
}
PIPELINE = {
    "type": "object",
    "properties": {"jobs": WORDS},
    "required": ["jobs"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "array",
    "items": {
        "oneOf": [
            {"type": "object", "properties": {"job": JOB}, "required": ["job"], "additionalProperties": False},
            {
                "type": "object",
                "properties": {
                    "project": {
                        "type": "object",
                        "additionalProperties": PIPELINE,
                    }
                },
                "required": ["project"],
                "additionalProperties": False,
            },
        ]
    },
}


@pytest.fixture(scope="module")
def items():
    return yaml.safe_load((ROOT / ".zuul.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def jobs(items):
    return {item["job"]["name"]: item["job"] for item in items if "job" in item}


def playbooks(job):
    """The playbooks that a job names."""
    named = [job.get(name, []) for name in ("pre-run", "run", "post-run")]
    return list(itertools.chain.from_iterable([one] if isinstance(one, str) else one for one in named))


def environments():
    """The environments of tox.ini, with alternatives in braces expanded."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini")
    for section in parser.sections():
        kind, _, name = section.partition(":")
        if kind == "testenv" and name:
            before, _, rest = name.partition("{")
            inner, _, after = rest.partition("}")
            yield from (f"{before}{one.strip()}{after}" for one in inner.split(","))


def test_the_form_is_what_zuul_documents(items):
    jsonschema.validate(items, SCHEMA)


def test_every_job_stands_on_one_that_is_there(jobs):
    assert {job["parent"] for job in jobs.values()} <= THEIRS | set(jobs)


def test_pipelines_run_every_job_that_is_not_abstract(items, jobs):
    (project,) = [item["project"] for item in items if "project" in item]
    run = set(itertools.chain.from_iterable(one["jobs"] for one in project.values()))
    assert run == {name for name, job in jobs.items() if not job.get("abstract")}


def test_every_playbook_is_there_with_roles_that_are_known(jobs):
    named = set(itertools.chain.from_iterable(playbooks(job) for job in jobs.values()))
    assert named == {str(path.relative_to(ROOT)) for path in (ROOT / "devstack" / "playbooks").glob("*.yaml")}
    for name in named:
        for play in yaml.safe_load((ROOT / name).read_text(encoding="utf-8")):
            assert play["hosts"] == "all"
            assert set(play.get("roles", [])) <= THEIR_ROLES


def test_every_tox_environment_is_there(jobs):
    ours = {name: job["vars"]["tox_envlist"] for name, job in jobs.items() if job["parent"] == "sluice-tox"}
    assert {name for value in ours.values() for name in value.split(",")} <= set(environments())
    # DevStack's jobs run environments of Tempest
    assert jobs["sluice-tempest"]["vars"]["tox_envlist"] == "all"


def test_tempest_installs_the_plugin_with_an_extra_that_is_there(jobs):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg")
    place, _, extra = jobs["sluice-tempest"]["vars"]["devstack_localrc"]["TEMPEST_PLUGINS"].partition("[")
    assert place == "/opt/stack/sluice"
    assert extra.rstrip("]") in parser["options.extras_require"]


def test_programs_that_playbooks_run_are_there():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "devstack" / "playbooks").glob("*.yaml"))
    named = re.findall(r"cmd: (tools/\S+)", text)
    assert named
    assert all((ROOT / name).is_file() for name in named)


def test_swift_has_the_version_that_sluice_is_tested_with(jobs):
    pinned = re.search(r"^swift==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    for name in ("sluice-devstack-base", "sluice-tempest"):
        job = jobs[name]
        (swift,) = [one for one in job["required-projects"] if isinstance(one, dict)]
        assert swift == {"name": "openstack/swift", "override-checkout": pinned[1]}
        assert job["vars"]["devstack_localrc"]["SWIFT_BRANCH"] == pinned[1]
