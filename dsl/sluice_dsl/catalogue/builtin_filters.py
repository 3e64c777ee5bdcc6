"""The built-in filters as they describe themselves, for where none is installed (``sluice-dsl`` alone).

The language may not import a filter, so this is a copy, made by `tools/builtin-filters`; a test of the filters
compares both.
"""

from __future__ import annotations

from typing import Final

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter

#: In the order of their stages.
BUILTIN_FILTERS: Final = (
    ActionInfo(
        "tagging",
        FILTER,
        "set a metadata entry on objects that are written",
        (
            Parameter(
                "name", "str", "of the entry, without `X-Object-Meta-`; letters, digits and dashes", required=True
            ),
            Parameter("value", "str", "of the entry", required=True),
            Parameter("overwrite", "bool", "also where the client sends a value of its own", default=True),
        ),
        stage=20,
        on_put=False,
        on_request=True,
    ),
    ActionInfo(
        "caching",
        FILTER,
        "keep whole objects on a fast disk at the proxy",
        (
            Parameter("max_size", "size", "larger objects are not kept", default=16777216, minimum=0),
            Parameter(
                "mode",
                "str",
                "`default` may be stale for a second, `strict` asks the disks about each hit and never is",
                default="default",
                choices=("default", "strict"),
            ),
            Parameter(
                "ttl", "duration", "how long an object is kept without asking about it", default=600.0, minimum=0
            ),
            Parameter(
                "admit", "int", "requests within the node's window before it is kept", default=2, minimum=1, maximum=100
            ),
        ),
        stage=50,
        on_put=False,
        on_request=True,
    ),
    ActionInfo(
        "delete_guard",
        FILTER,
        "keep deleted objects in a bin for a time",
        (
            Parameter("keep", "duration", "how long a deleted object is kept", default=604800.0, minimum=1.0),
            Parameter("bin", "str", "container of the same account that deleted objects go to", default="deleted"),
        ),
        stage=60,
        on_put=False,
        on_request=True,
    ),
    ActionInfo("noop", FILTER, "change nothing; for measuring and for trying out conditions", stage=100, on_get=True),
    ActionInfo(
        "csv_select",
        FILTER,
        "give only some columns and rows of CSV objects; clients may ask for fewer",
        (
            Parameter("columns", "list", "columns that may be read (names, or _1, _2, ...); empty: all", default=""),
            Parameter("where", "str", "condition that rows must meet, as in SQL; empty: none", default=""),
            Parameter(
                "header",
                "str",
                "the first record holds names (yes), data (no), or is passed over (ignore)",
                default="yes",
                choices=("yes", "no", "ignore"),
            ),
            Parameter("delimiter", "str", "what separates fields: one ASCII character, or tab", default=","),
            Parameter("quote", "str", "what encloses fields: one ASCII character, or none", default='"'),
            Parameter(
                "multiline", "bool", "line ends inside quotes are data; false: each line is a record", default=True
            ),
        ),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        default_place=STORAGE_NODE,
        stage=200,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        protective=True,
    ),
    ActionInfo(
        "downsample",
        FILTER,
        "give rows of a CSV time series averaged per interval and key, instead of all of them",
        (
            Parameter("time", "str", "column of the time: seconds since 1970 (see `unit`) or ISO 8601", required=True),
            Parameter(
                "interval", "duration", "length of an interval", minimum=0.001, maximum=3200000000.0, required=True
            ),
            Parameter("values", "list", "columns of numbers", required=True),
            Parameter(
                "keys", "list", "columns that tell series apart (a meter, a sensor); empty: one series", default=""
            ),
            Parameter("unit", "str", "what a time that is a number counts", default="s", choices=("s", "ms", "us")),
            Parameter("digits", "int", "digits behind the point of computed numbers", default=6, minimum=0, maximum=15),
            Parameter(
                "aggregate", "str", "what becomes of the values", default="avg", choices=("avg", "sum", "min", "max")
            ),
            Parameter(
                "order",
                "str",
                "rows come in the order of time, or in none (then at most 100000 groups)",
                default="time",
                choices=("time", "none"),
            ),
            Parameter("delimiter", "str", "what separates fields: one ASCII character, or tab", default=","),
            Parameter("quote", "str", "what encloses fields: one ASCII character, or none", default='"'),
            Parameter(
                "multiline", "bool", "line ends inside quotes are data; false: each line is a record", default=True
            ),
        ),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        default_place=STORAGE_NODE,
        stage=210,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        needs_whole_object=True,
        protective=True,
    ),
    ActionInfo(
        "upsample",
        FILTER,
        "give a CSV time series with interpolated rows where it has gaps",
        (
            Parameter("time", "str", "column of the time: seconds since 1970 (see `unit`) or ISO 8601", required=True),
            Parameter(
                "interval", "duration", "length of an interval", minimum=0.001, maximum=3200000000.0, required=True
            ),
            Parameter("values", "list", "columns of numbers", required=True),
            Parameter(
                "keys", "list", "columns that tell series apart (a meter, a sensor); empty: one series", default=""
            ),
            Parameter("unit", "str", "what a time that is a number counts", default="s", choices=("s", "ms", "us")),
            Parameter("digits", "int", "digits behind the point of computed numbers", default=6, minimum=0, maximum=15),
            Parameter("most", "int", "rows put into one gap; longer ones stay", default=24, minimum=1, maximum=100),
            Parameter("delimiter", "str", "what separates fields: one ASCII character, or tab", default=","),
            Parameter("quote", "str", "what encloses fields: one ASCII character, or none", default='"'),
            Parameter(
                "multiline", "bool", "line ends inside quotes are data; false: each line is a record", default=True
            ),
        ),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        default_place=STORAGE_NODE,
        stage=215,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        needs_whole_object=True,
    ),
    ActionInfo(
        "compression",
        FILTER,
        "store objects compressed; clients see them as they were",
        (
            Parameter("engine", "str", "codec", default="zstd", choices=("gzip", "lz4", "zstd")),
            Parameter(
                "level",
                "int",
                "effort, higher is smaller and slower; gzip 0 to 3 (1), lz4 0 to 12 (0), zstd 1 to 19 (1)",
                minimum=0,
                maximum=19,
            ),
            Parameter(
                "min_size", "size", "smaller objects are stored plain", default=4096, minimum=0, maximum=16777216
            ),
            Parameter(
                "min_gain",
                "percent",
                "objects whose first 256 KiB shrink by less are stored plain",
                default=0.05,
                minimum=0.0,
                maximum=0.99,
            ),
            Parameter(
                "types",
                "list",
                "extensions and media types to compress (pdf, text/plain, image/*); empty: all not compressed already",
                default="",
            ),
            Parameter(
                "frame_size",
                "size",
                "plain bytes per frame, what a small range costs; by default it grows with the object from 256 KiB",
                minimum=1024,
                maximum=33554432,
            ),
        ),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        stage=300,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    ),
    ActionInfo(
        "encryption",
        FILTER,
        "store objects encrypted and authenticated; clients see them as they were",
        (Parameter("key", "str", "identifier of the root key; by default the one active when the object comes"),),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
        protective=True,
    ),
    ActionInfo(
        "bitrev",
        FILTER,
        "store each byte with its bits in reverse order; an example",
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        stage=750,
        changes_content=True,
        reversible=True,
        random_access=True,
    ),
    ActionInfo(
        "xor",
        FILTER,
        "store each byte XOR a constant; an example, no protection",
        (Parameter("key", "int", "the constant", default=90, minimum=1, maximum=255),),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        stage=800,
        changes_content=True,
        reversible=True,
        random_access=True,
    ),
    ActionInfo(
        "checksum",
        FILTER,
        "store a digest behind every 64 KiB and verify it on every read, ranges included",
        (Parameter("digest", "str", "what is computed", default="crc32", choices=("crc32", "sha256")),),
        places=(
            PROXY,
            STORAGE_NODE,
        ),
        stage=900,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    ),
)
