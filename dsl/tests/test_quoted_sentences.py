"""The sentences that the design, the issues and the papers quote parse and compile as they stand."""

from dataclasses import replace

import pytest

from sluice_core.describe import Parameter
from sluice_core.messages.policies import Target
from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue

PARAM1 = (Parameter("param1", "str", "as in the papers"),)
KNOWN = make_catalogue().actions
PAPERS = make_catalogue(
    actions={
        **KNOWN,
        "compression": replace(KNOWN["compression"], parameters=PARAM1 + KNOWN["compression"].parameters),
        # in that sentence compression is written before caching
        "caching": replace(KNOWN["caching"], parameters=PARAM1, stage=600),
    },
    aliases={"C1": Target("container", "name", "T1/logs")},
    tenants={},
)

# sentence, target's level and name, condition, (verb keyword place life parameters) of each action
SENTENCES = [
    ("FOR TENANT acme WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd ON PROXY TRANSIENT",
     "tenant", "acme", ["metric", "PUTS_SEC", ">", 3.0],
     [("compression", "proxy", "transient", {"engine": "zstd"})]),
    ("FOR CONTAINER acme/logs WHEN OBJECT_TYPE = DOCS DO SET compression ON PROXY, SET encryption ON STORAGE_NODE",
     "container", "acme/logs", "DOCS",
     [("compression", "proxy", "persistent", {}), ("encryption", "storage_node", "persistent", {})]),
    ("FOR TENANT acme DO SET bandwidth WITH get_bw=30MBps",
     "tenant", "acme", True, [("bandwidth", "proxy", "persistent", {"get_bw": 30e6})]),
    ("FOR CONTAINER acme/thumbs DO SET elasticity WITH target_size=10GB",
     "container", "acme/thumbs", True, [("elasticity", "proxy", "persistent", {"target_size": 10**10})]),
    ("FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd ON PROXY TRANSIENT",
     "tenant", "AUTH_test", ["metric", "PUTS_SEC", ">", 3.0],
     [("compression", "proxy", "transient", {"engine": "zstd"})]),
    ("FOR T1 WHEN Throughput < 10MBps DO SET Compression",
     "tenant", "T1", ["metric", "THROUGHPUT", "<", 10e6], [("compression", "proxy", "persistent", {})]),
    ("FOR T1 WHEN PUTS_SEC > 3 DO SET COMPRESSION",
     "tenant", "T1", ["metric", "PUTS_SEC", ">", 3.0], [("compression", "proxy", "persistent", {})]),
    ("FOR TENANT T1 WHEN OBJECT_TYPE=DOCS DO SET COMPRESSION ON PROXY, SET ENCRYPTION ON STORAGE_NODE",
     "tenant", "T1", "DOCS",
     [("compression", "proxy", "persistent", {}), ("encryption", "storage_node", "persistent", {})]),
    ("FOR CONTAINER C1 WHEN GETS_SEC > 5 DO SET CACHING TRANSIENT",
     "container", "T1/logs", ["metric", "GETS_SEC", ">", 5.0], [("caching", "proxy", "transient", {})]),
    ("FOR TENANT T1 DO SET BANDWIDTH WITH GET_BW=30MBps",
     "tenant", "T1", True, [("bandwidth", "proxy", "persistent", {"get_bw": 30e6})]),
    ("FOR T1 DO SET Compression WITH Param1=gzip PERSISTENT, Caching Param1=LRU TRANSIENT",
     "tenant", "T1", True,
     [("compression", "proxy", "persistent", {"param1": "gzip"}),
      ("caching", "proxy", "transient", {"param1": "LRU"})]),
    ("FOR T1 WHEN OBJECT_SIZE<512 DO SET noop",
     "tenant", "T1", ["size", "<", 512], [("noop", "proxy", "persistent", {})]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "level", "name", "condition", "actions"), SENTENCES)
def test_a_quoted_sentence_means_what_it_says(text, level, name, condition, actions):
    (compiled,) = compile_text(text, PAPERS)
    plan = compiled.plan
    assert (plan.target.level, plan.target.name) == (level, name)
    assert plan.condition == (["type", list(PAPERS.terms["DOCS"])] if condition == "DOCS" else condition)
    assert [(one.keyword, one.place, one.life, one.params) for one in plan.actions] == actions
    assert {one.verb for one in plan.actions} == {"set"}
    assert compile_text(compiled.text, PAPERS)[0].plan == plan


def test_all_of_them_may_stand_in_one_text():
    text = "\n".join(
        sentence.replace("T1", f"T{n}") for n, (sentence, *_) in enumerate(SENTENCES) if "C1" not in sentence
    )
    assert len(compile_text(text, PAPERS)) == len(SENTENCES) - 1
