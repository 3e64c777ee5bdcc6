"""The sentences that the design, the issues and the papers quote compile against the shipped catalogue.

A placeholder of the papers (``Param1=gzip``, ``Param1=LRU``) is a parameter of the filter here.
"""

from dataclasses import replace

import pytest

from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import PolicyErrors, compile_text

#: The catalogue of a new cluster; of the papers' names only the alias of a container must be registered.
SHIPPED = replace(default_catalogue(), aliases={"C1": Target("container", "name", "T1/logs")})

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
    ("FOR CONTAINER C1 WHEN GETS_SEC > 5 AND OBJECT_SIZE<10M DO SET CACHING ON PROXY TRANSIENT",
     "container", "T1/logs", ["and", ["metric", "GETS_SEC", ">", 5.0], ["size", "<", 10**7]],
     [("caching", "proxy", "transient", {})]),
    ("FOR T1 DO SET Compression WITH engine=gzip PERSISTENT, Caching mode=strict TRANSIENT",
     "tenant", "T1", True,
     [("compression", "proxy", "persistent", {"engine": "gzip"}),
      ("caching", "proxy", "transient", {"mode": "strict"})]),
    ("FOR T1 DO SET compression WITH engine=gzip, SET caching WITH ttl=60s",
     "tenant", "T1", True,
     [("compression", "proxy", "persistent", {"engine": "gzip"}),
      ("caching", "proxy", "persistent", {"ttl": 60.0})]),
    ("FOR T1 DO SET compression WITH engine=gzip level=6",
     "tenant", "T1", True, [("compression", "proxy", "persistent", {"engine": "gzip", "level": 6})]),
    ("FOR T1 DO SET compression WITH engine=gzip level=9",
     "tenant", "T1", True, [("compression", "proxy", "persistent", {"engine": "gzip", "level": 9})]),
    ("FOR T1 WHEN OBJECT_SIZE<512 DO SET noop",
     "tenant", "T1", ["size", "<", 512], [("noop", "proxy", "persistent", {})]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "level", "name", "condition", "actions"), SENTENCES)
def test_a_quoted_sentence_means_what_it_says(text, level, name, condition, actions):
    (compiled,) = compile_text(text, SHIPPED)
    plan = compiled.plan
    assert (plan.target.level, plan.target.name) == (level, name)
    assert plan.condition == (["type", list(SHIPPED.terms["DOCS"])] if condition == "DOCS" else condition)
    assert [(one.keyword, one.place, one.life, one.params) for one in plan.actions] == actions
    assert {one.verb for one in plan.actions} == {"set"}
    assert compile_text(compiled.text, SHIPPED)[0].plan == plan


def test_all_of_them_may_stand_in_one_text():
    text = "\n".join(
        sentence.replace("T1", f"T{n}") for n, (sentence, *_) in enumerate(SENTENCES) if "C1" not in sentence
    )
    assert len(compile_text(text, SHIPPED)) == len([one for one in SENTENCES if "C1" not in one[0]])


def test_elasticity_is_a_word_that_waits_for_what_enforces_it():
    text = "FOR CONTAINER acme/thumbs DO SET elasticity WITH target_size=10GB"
    with pytest.raises(PolicyErrors, match="`elasticity` is not available on this cluster"):
        compile_text(text, SHIPPED)
    enforced = replace(SHIPPED.actions["elasticity"], available=True)
    (compiled,) = compile_text(text, replace(SHIPPED, actions={**SHIPPED.actions, "elasticity": enforced}))
    assert compiled.plan.target.name == "acme/thumbs"
    assert [(one.keyword, one.params) for one in compiled.plan.actions] == [("elasticity", {"target_size": 10**10})]
