"""SelectObjectContent as boto3 sends it, to a whole cluster: large objects, policies, buckets of other users."""

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.support.cluster.people import s3_keys

DATA = b"id,meter,kwh\n" + b"".join(b"%d,m%d,%d.5\n" % (number, number % 50, number % 100) for number in range(200_000))


def client_of(cluster, user, key):
    return boto3.client(
        "s3",
        endpoint_url=cluster.proxy_url,
        aws_access_key_id=user,
        aws_secret_access_key=key,
        region_name="us-east-1",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
    )


@pytest.fixture(scope="module")
def s3(cluster):
    client = client_of(cluster, *s3_keys(cluster, "test:tester"))
    client.create_bucket(Bucket="readings")
    client.put_object(Bucket="readings", Key="small.csv", Body=DATA)
    upload = {"Bucket": "readings", "Key": "large.csv"}
    upload["UploadId"] = client.create_multipart_upload(**upload)["UploadId"]
    parts = []
    for number, piece in enumerate((DATA * 2, DATA), 1):
        part = client.upload_part(**upload, PartNumber=number, Body=piece)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    yield client
    client.close()


def select(client, sql, key="small.csv", header="USE"):
    events = client.select_object_content(
        Bucket="readings",
        Key=key,
        Expression=sql,
        ExpressionType="SQL",
        InputSerialization={"CSV": {"FileHeaderInfo": header}},
        OutputSerialization={"CSV": {}},
    )["Payload"]
    found = list(events)
    assert "End" in found[-1]
    return b"".join(one["Records"]["Payload"] for one in found if "Records" in one)


def test_rows_and_columns_of_an_object(s3):
    expected = b"".join(b"%d,m%d\n" % (number, number % 50) for number in range(200_000) if number % 100 < 10)
    assert select(s3, "SELECT s.id, s.meter FROM S3Object s WHERE s.kwh < 10") == expected


def test_an_object_of_several_parts_is_one_table(s3):
    assert select(s3, "SELECT COUNT(*) FROM S3Object", "large.csv", "NONE") == b"%d\n" % (3 * DATA.count(b"\n"))


def test_what_a_policy_holds_back_is_not_selected(s3, policies):
    policies("FOR CONTAINER AUTH_test/readings DO SET csv_select WITH columns='meter,kwh', where='kwh < 2'")
    assert select(s3, "SELECT * FROM S3Object LIMIT 2") == b"m0,0.5\nm1,1.5\n"
    with pytest.raises(ClientError, match="no column `id`: there are meter, kwh"):
        select(s3, "SELECT id FROM S3Object")


def test_strangers_get_nothing(cluster, s3):
    stranger = client_of(cluster, *s3_keys(cluster, "test2:tester2"))
    with pytest.raises(ClientError, match=r"NoSuchBucket|AccessDenied"):
        select(stranger, "SELECT * FROM S3Object")
    stranger.close()
    forger = client_of(cluster, s3_keys(cluster, "test:tester")[0], "guessed")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        select(forger, "SELECT * FROM S3Object")
    forger.close()
