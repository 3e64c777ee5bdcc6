"""Uploaded shared objects: the tables that are read, and the files that are refused."""

import pytest
from tests.support.shared_objects import AARCH64, X86_64, shared_object

from sluice_code.code_store import BadUpload
from sluice_code.volume_filters import check_shared_object


@pytest.mark.parametrize(("machine", "number"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_a_shared_object_that_exports_the_function_is_taken(machine, number):
    check_shared_object(shared_object(machine=number), "filter_init", machine)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"#!/bin/sh\n", "no ELF file of 64 bits"),
        (b"\x7fELF\x01\x01\x01".ljust(200, b"\0"), "no ELF file of 64 bits"),
        (shared_object(kind=2), "no shared object"),
        (shared_object(machine=AARCH64), "for machines of type `aarch64`, expected `x86_64`"),
        (shared_object("plugin_init"), "does not export `filter_init`"),
        (shared_object(defined_in=0), "does not export `filter_init`"),
    ],
)
def test_anything_else_is_refused_with_the_reason(code, reason):
    with pytest.raises(BadUpload, match=reason):
        check_shared_object(code, "filter_init", "x86_64")


def test_a_file_that_was_cut_anywhere_is_refused():
    whole = shared_object()
    for size in range(len(whole)):
        with pytest.raises(BadUpload):
            check_shared_object(whole[:size], "filter_init", "x86_64")
