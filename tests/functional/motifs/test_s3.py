"""Contracted objects and contracted parts of uploads as clients of S3 see them."""

import hashlib

import pytest
from tests.support.cluster.motifs import FIRST, SECOND, WHOLE, contract, is_contracted, put, sources, stored_names
from tests.support.cluster.people import s3_keys
from tests.support.cluster.s3_differential import Both, client_of

ETAG = hashlib.md5(WHOLE).hexdigest()
#: Request, and whether it has the bytes made.
REQUESTS = {
    "head": ("head_object", {}, False),
    "list": ("list_objects_v2", {}, False),
    "not modified": ("get_object", {"IfNoneMatch": ETAG}, False),
    "no such etag": ("get_object", {"IfMatch": "other"}, False),
    "whole": ("get_object", {}, True),
    "range": ("get_object", {"Range": "bytes=900000-1200000"}, True),
    "last bytes": ("get_object", {"Range": "bytes=-7"}, True),
}
PART = 5 << 20  # the least that S3 takes for a part that is not the last


@pytest.fixture
def s3(cluster):
    client = client_of(cluster.proxy_url, *s3_keys(cluster, "test:tester"))
    yield client
    client.close()


def write(s3, swift, bucket, made):
    """An object of S3, so that it has an S3 access list, with a motif, which only Swift's API can attach."""
    s3.put_object(Bucket=bucket, Key="o", Body=WHOLE, ContentType="text/csv", Metadata={"colour": "blue"})
    assert swift.request("POST", f"{bucket}/o", x_object_motif=made, x_object_meta_colour="blue").status == 202


def seen(s3, bucket, method, arguments):
    """The response to S3's client, with the times that must not change."""
    key = {} if method.startswith("list") else {"Key": "o"}
    view, answer = Both.ask(s3, method, {"Bucket": bucket, **key, **arguments})
    rows = [row["LastModified"] for row in answer.get("Contents", ())]
    return view, answer.get("LastModified"), rows


def test_a_contracted_object_is_to_a_client_of_s3_what_it_was(motifs, swift, s3):
    s3.create_bucket(Bucket="s3-mo")
    made = sources(swift, "s3-mo-sources")
    write(s3, swift, "s3-mo", made)
    before = {what: seen(s3, "s3-mo", *request[:2]) for what, request in REQUESTS.items()}
    assert before["head"][0][0]["ETag"] == f'"{ETAG}"'
    for what, (method, arguments, made_again) in REQUESTS.items():
        contract(motifs, "s3-mo/o")
        assert seen(s3, "s3-mo", method, arguments) == before[what], what
        if not made_again:
            assert is_contracted(motifs, "s3-mo/o"), what


def test_a_copy_on_the_server_takes_the_motif_along(motifs, swift, s3):
    s3.create_bucket(Bucket="s3-copy")
    made = sources(swift, "s3-copy-sources")
    write(s3, swift, "s3-copy", made)
    contract(motifs, "s3-copy/o")
    copied = s3.copy_object(Bucket="s3-copy", Key="copy", CopySource="s3-copy/o")
    assert copied["CopyObjectResult"]["ETag"] == f'"{ETAG}"'
    assert is_contracted(motifs, "s3-copy/o")
    assert is_contracted(motifs, "s3-copy/copy")
    found = s3.get_object(Bucket="s3-copy", Key="copy")
    assert (found["Body"].read(), found["Metadata"], found["ETag"]) == (WHOLE, {"colour": "blue"}, f'"{ETAG}"')
    sizes = {row["Key"]: (row["Size"], row["ETag"]) for row in s3.list_objects_v2(Bucket="s3-copy")["Contents"]}
    assert sizes == {name: (len(WHOLE), f'"{ETAG}"') for name in ("o", "copy")}


def test_an_upload_is_completed_and_read_while_its_parts_are_contracted(motifs, swift, s3):
    s3.create_bucket(Bucket="s3-parts")
    put(swift, "s3-parts-sources")
    first, second = (FIRST * 10)[:PART], SECOND
    for name, content in (("a", first[: PART // 2]), ("b", first[PART // 2 :]), ("c", second)):
        put(swift, f"s3-parts-sources/{name}", content)
    upload = {"Bucket": "s3-parts", "Key": "large"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    parts = []
    for number, (content, of) in enumerate(((first, "ab"), (second, "c")), 1):
        etag = s3.upload_part(**upload, PartNumber=number, Body=content)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
        stored = f"s3-parts+segments/large/{upload['UploadId']}/{number}"
        made = ",".join(f"AUTH_test/s3-parts-sources/{name}" for name in of)
        assert swift.request("POST", stored, x_object_motif=f"concat; of={made}").status == 202
        contract(motifs, stored)
    stored = sorted(
        name for name in stored_names(motifs) if name.startswith("s3-parts+segments/large/") and name[-2] == "/"
    )
    assert len(stored) == 2
    listed = s3.list_parts(**upload)["Parts"]
    assert [(one["Size"], one["ETag"]) for one in listed] == [
        (len(content), f'"{hashlib.md5(content).hexdigest()}"') for content in (first, second)
    ]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    head = s3.head_object(Bucket="s3-parts", Key="large")
    assert head["ContentLength"] == PART + len(second)
    assert all(is_contracted(motifs, name) for name in stored), "nothing was read"
    span = s3.get_object(Bucket="s3-parts", Key="large", Range=f"bytes={PART - 5}-{PART + 5}")
    assert (span["ContentLength"], span["Body"].read()) == (11, first[-5:] + second[:6])
    for name in stored:
        contract(motifs, name)
    found = s3.get_object(Bucket="s3-parts", Key="large")
    assert (found["ContentLength"], found["Body"].read() == first + second) == (PART + len(second), True)
    assert found["ETag"] == head["ETag"]


def test_a_part_is_copied_from_a_range_of_a_contracted_object(motifs, swift, s3):
    s3.create_bucket(Bucket="s3-range")
    made = sources(swift, "s3-range-sources")
    write(s3, swift, "s3-range", made)
    contract(motifs, "s3-range/o")
    upload = {"Bucket": "s3-range", "Key": "large"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    span = {"CopySource": "s3-range/o", "CopySourceRange": "bytes=100-1000000"}
    copied = s3.upload_part_copy(**upload, PartNumber=1, **span)["CopyPartResult"]
    assert copied["ETag"] == f'"{hashlib.md5(WHOLE[100:1000001]).hexdigest()}"'
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": copied["ETag"]}]})
    assert s3.get_object(Bucket="s3-range", Key="large")["Body"].read() == WHOLE[100:1000001]
