"""The common part of all kinds of jobs: ids, and the deletion of ended jobs."""

import hashlib
import json

from sluice_core.jobs import longest_ended, new_job_id, request_id


def test_ids_have_the_order_in_which_jobs_were_ordered():
    assert new_job_id(1) < new_job_id(2) < new_job_id(1 << 44)
    assert new_job_id(5) != new_job_id(5)


def test_the_same_request_has_the_same_id_as_it_always_had():
    said = ["me", "key", {"target": "acme/ö", "to": "plain"}]
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    assert request_id(16, *said) == digest[:16]
    assert request_id(12, "me", "key", "FOR TENANT a DO SET compression", 0) == "e207b6ea546a"
    assert request_id(16, *said) == request_id(16, "me", "key", {"to": "plain", "target": "acme/ö"})


def test_those_that_ended_last_are_kept():
    times = [(3.0, "c"), (1.0, "a"), (2.0, "b")]
    assert longest_ended(times, 2) == ["a"]
    assert longest_ended(times, 3) == longest_ended([], 0) == []
    assert longest_ended(times, 0) == ["a", "b", "c"]
