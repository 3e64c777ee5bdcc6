"""The same S3 requests to plain Swift and to Sluice under policies, by boto3; the responses are compared."""

import hashlib
import random
from urllib.parse import urlsplit

import pytest
from tests.support.cluster.people import s3_keys
from tests.support.cluster.s3_differential import Both, client_of

PART = 5 << 20  # the least that S3 takes for a part that is not the last
TEXT = b"".join(b"%09d;sensor-%d;21.5;ok\n" % (n, n % 7) for n in range(420_000))
NOISE = random.Random(5).randbytes(PART)
SENTENCES = (
    "FOR TENANT AUTH_test DO SET compression WITH engine=zstd min_size=0 ON PROXY",
    "FOR TENANT AUTH_test DO SET compression WITH engine=lz4 min_size=0 ON PROXY, SET encryption ON PROXY",
)


@pytest.fixture(scope="module")
def clients(cluster):
    assert urlsplit(cluster.proxy_url).hostname == "127.0.0.1"
    ours = client_of(cluster.proxy_url, *s3_keys(cluster, "test:tester"))
    return ours, client_of(cluster.plain_url, *s3_keys(cluster, "test2:tester2"))


@pytest.fixture(scope="module", params=SENTENCES, ids=["compression", "and-encryption"])
def both(request, api, clients):
    policy = api.create_policy(request.param, wait=10)
    assert policy["enforced"]["nodes"] == policy["enforced"]["total"] >= 1
    twins = Both(*clients)
    twins.bucket = f"s3-same-{SENTENCES.index(request.param)}"
    twins("create_bucket", Bucket=twins.bucket)
    yield twins
    api.delete_policy(policy["id"])


def put_in_parts(both, key, parts):
    uploads = [
        one["UploadId"] for one in both("create_multipart_upload", Bucket=both.bucket, Key=key, Metadata={"m": "1"})
    ]
    ids = [{"UploadId": one} for one in uploads]
    listed = []
    for number, part in enumerate(parts, 1):
        answers = both("upload_part", *ids, Bucket=both.bucket, Key=key, PartNumber=number, Body=part)
        assert answers[0]["ETag"] == f'"{hashlib.md5(part).hexdigest()}"'
        listed.append({"PartNumber": number, "ETag": answers[0]["ETag"]})
    both("list_parts", *ids, Bucket=both.bucket, Key=key)
    return ids, {"Parts": listed}


def test_objects(both):
    for key, body in {"empty": b"", "tiny": b"x", "text": TEXT[:900_000], "noise": NOISE[:300_000]}.items():
        both("put_object", Bucket=both.bucket, Key=key, Body=body, ContentType="text/csv", Metadata={"colour": "blue"})
        both("head_object", Bucket=both.bucket, Key=key)
        both("get_object", Bucket=both.bucket, Key=key)
        for wanted in ("bytes=0-0", "bytes=100-299999", "bytes=-5", "bytes=899999-", "bytes=9999999-"):
            both("get_object", Bucket=both.bucket, Key=key, Range=wanted)
        etag = hashlib.md5(body).hexdigest()
        both("get_object", Bucket=both.bucket, Key=key, IfMatch=etag)
        both("get_object", Bucket=both.bucket, Key=key, IfNoneMatch=etag)
        both("get_object", Bucket=both.bucket, Key=key, IfMatch="other")
    both("list_objects_v2", Bucket=both.bucket)
    both("list_objects", Bucket=both.bucket, Prefix="t", Delimiter="e")


def test_a_wrong_digest_is_refused(both):
    both("put_object", Bucket=both.bucket, Key="bad", Body=TEXT[:9000], ContentMD5="AAAAAAAAAAAAAAAAAAAAAA==")
    both("get_object", Bucket=both.bucket, Key="bad")


def test_an_upload_in_parts(both):
    parts = [TEXT[:PART], NOISE, TEXT[PART : PART + 700_001]]
    ids, listed = put_in_parts(both, "large", parts)
    both("complete_multipart_upload", *ids, Bucket=both.bucket, Key="large", MultipartUpload=listed)
    answers = both("get_object", Bucket=both.bucket, Key="large")
    assert answers[0]["ContentLength"] == sum(map(len, parts))
    both("head_object", Bucket=both.bucket, Key="large")
    for wanted in ("bytes=0-9", f"bytes={PART - 5}-{PART + 5}", f"bytes={2 * PART - 100}-{2 * PART + 100}", "bytes=-9"):
        both("get_object", Bucket=both.bucket, Key="large", Range=wanted)
    both("get_object", Bucket=both.bucket, Key="large", PartNumber=2)
    both("head_object", Bucket=both.bucket, Key="large", PartNumber=3)
    both("list_objects_v2", Bucket=both.bucket, Prefix="large")
    both("copy_object", Bucket=both.bucket, Key="copied", CopySource={"Bucket": both.bucket, "Key": "large"})
    both("get_object", Bucket=both.bucket, Key="copied", Range=f"bytes={PART - 5}-{PART + 5}")
    both("delete_object", Bucket=both.bucket, Key="large")
    both("get_object", Bucket=both.bucket, Key="large")


def test_an_upload_in_parts_that_is_given_up(both):
    ids, _ = put_in_parts(both, "never", [TEXT[:PART]])
    both("list_multipart_uploads", Bucket=both.bucket)
    both("abort_multipart_upload", *ids, Bucket=both.bucket, Key="never")
    both("get_object", Bucket=both.bucket, Key="never")


def test_a_part_copied_from_an_object(both):
    both("put_object", Bucket=both.bucket, Key="source", Body=TEXT[: PART + 1000])
    ids = [
        {"UploadId": one["UploadId"]} for one in both("create_multipart_upload", Bucket=both.bucket, Key="assembled")
    ]
    source = {"Bucket": both.bucket, "Key": "source"}
    answers = both(
        "upload_part_copy",
        *ids,
        Bucket=both.bucket,
        Key="assembled",
        PartNumber=1,
        CopySource=source,
        CopySourceRange=f"bytes=7-{PART + 6}",
    )
    etag = answers[0]["CopyPartResult"]["ETag"]
    listed = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    both("complete_multipart_upload", *ids, Bucket=both.bucket, Key="assembled", MultipartUpload=listed)
    assert both("head_object", Bucket=both.bucket, Key="assembled")[0]["ContentLength"] == PART


def test_versions(both):
    bucket = f"{both.bucket}-versions"
    both("create_bucket", Bucket=bucket)
    both("put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for size in (5000, 300_000, 70):
        both("put_object", Bucket=bucket, Key="v", Body=TEXT[:size])
    both("delete_object", Bucket=bucket, Key="v")
    both("get_object", Bucket=bucket, Key="v")
    listed = [client.list_object_versions(Bucket=bucket)["Versions"] for client in both.clients]
    assert [row["Size"] for row in listed[0]] == [row["Size"] for row in listed[1]] == [70, 300_000, 5000]
    for mine, theirs in zip(*listed, strict=True):
        assert (mine["ETag"], mine["IsLatest"]) == (theirs["ETag"], theirs["IsLatest"])
        both("get_object", {"VersionId": mine["VersionId"]}, {"VersionId": theirs["VersionId"]}, Bucket=bucket, Key="v")


def test_many_deleted_at_once(both):
    for key in ("d1", "d2"):
        both("put_object", Bucket=both.bucket, Key=key, Body=TEXT[:5000])
    both("delete_objects", Bucket=both.bucket, Delete={"Objects": [{"Key": "d1"}, {"Key": "d2"}, {"Key": "d3"}]})
    both("list_objects_v2", Bucket=both.bucket, Prefix="d")
