"""SelectObjectContent with boto3 itself, through Swift's s3api and tempauth, without a network."""

import gzip
import io
import json

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError
from swift.common.middleware.s3api.s3api import filter_factory as s3api
from swift.common.middleware.tempauth import filter_factory as tempauth

from sluice_middleware.s3select import event_stream, middleware
from sluice_middleware.s3select.middleware import filter_factory
from sluice_middleware.testing import FakeObject, FakeSwift

PEOPLE = b'id,name,city,age\n1,Ada,"London, UK",36\n2,Grace,New York,85\n3,"Edsger ""E""",Austin,72\n4,Nobody,,\n'
PATH = "/v1/AUTH_test/bucket/people.csv"
CSV = {"CSV": {"FileHeaderInfo": "USE"}}


class Raw(io.BytesIO):
    """The raw response that botocore reads."""

    def stream(self, size=1024, decode_content=None):
        while piece := self.read(size):
            yield piece


def answer(app, request):
    """The answer of a WSGI application to a request of botocore."""
    path, _, query = request.url.removeprefix("http://s3.test").partition("?")
    body = request.body or b""
    env = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "s3.test",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "s3.test",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)),
    }
    for name, value in request.headers.items():
        text = value.decode() if isinstance(value, bytes) else value
        folded = name.upper().replace("-", "_")
        env[folded if folded in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{folded}"] = text
    began = []
    out = app(env, lambda status, headers, exc_info=None: began.append((status, headers)))
    try:
        content = b"".join(out)
    finally:
        if hasattr(out, "close"):
            out.close()
    status, headers = began[0]
    return AWSResponse(request.url, int(status[:3]), dict(headers), Raw(content))


class Bucket:
    """boto3 before Sluice's middleware before Swift's before a Swift in memory."""

    def __init__(self, **options):
        self.swift = FakeSwift()
        right = tempauth({}, user_test_tester="testing .admin")(lambda *request: self.swift(*request))
        self.app = filter_factory({})(s3api({}, **options)(right))

    def put(self, data, piece=50):
        self.swift = FakeSwift(piece=piece)
        self.swift.objects[PATH] = FakeObject(data, {"Content-Type": "text/csv"}, "0" * 32)

    def client(self, key="testing"):
        client = boto3.client(
            "s3",
            endpoint_url="http://s3.test",
            aws_access_key_id="test:tester",
            aws_secret_access_key=key,
            region_name="us-east-1",
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )
        client.meta.events.register("before-send.s3", lambda request, **_: answer(self.app, request))
        return client

    def select(self, sql, source=CSV, target=None, **more):
        events = self.client().select_object_content(
            Bucket="bucket",
            Key="people.csv",
            Expression=sql,
            ExpressionType="SQL",
            InputSerialization=source,
            OutputSerialization=target or {"CSV": {}},
            **more,
        )["Payload"]
        return list(events)


def rows(events):
    return b"".join(one["Records"]["Payload"] for one in events if "Records" in one).decode()


@pytest.fixture(scope="module")
def only_bucket():
    """Swift's loggers leave a socket open each time they are created."""
    return Bucket()


@pytest.fixture
def bucket(only_bucket):
    only_bucket.put(PEOPLE)
    yield only_bucket
    assert only_bucket.swift.opened == only_bucket.swift.closed


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT * FROM S3Object",
            '1,Ada,"London, UK",36\n2,Grace,New York,85\n3,"Edsger ""E""",Austin,72\n4,Nobody,,\n',
        ),
        ("SELECT s.name, s.id FROM S3Object s WHERE s.age > 40", 'Grace,2\n"Edsger ""E""",3\n'),
        ("SELECT s._2 FROM S3Object[*] AS s WHERE CAST(s._4 AS INT) < 80 LIMIT 1", "Ada\n"),
        ("select \"name\" from s3object where city = 'London, UK';", "Ada\n"),
        ("SELECT id FROM S3Object WHERE name LIKE '%\"E\"'", "3\n"),
        ("SELECT COUNT(*) FROM S3Object s WHERE s.age IS NOT NULL", "3\n"),
        ("SELECT * FROM S3Object LIMIT 0", ""),
        ("SELECT id FROM S3Object WHERE id IN ('1', '4') AND NOT name = 'Ada'", "4\n"),
    ],
)
def test_a_statement_selects(bucket, sql, expected):
    events = bucket.select(sql)
    assert rows(events) == expected
    stats = next(one["Stats"]["Details"] for one in events if "Stats" in one)
    assert stats["BytesReturned"] == len(expected)
    assert "End" in events[-1]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ({"CSV": {"FileHeaderInfo": "IGNORE"}}, {"CSV": {}}, "2,Grace\n"),
        ({"CSV": {"FileHeaderInfo": "NONE"}}, {"CSV": {"QuoteFields": "ALWAYS"}}, '"2","Grace"\n'),
        ({"CSV": {}}, {"CSV": {"FieldDelimiter": "|", "RecordDelimiter": ";;"}}, "2|Grace;;"),
        ({"CSV": {}}, {"JSON": {"RecordDelimiter": ";"}}, '{"_1":"2","_2":"Grace"};'),
    ],
)
def test_input_and_output_in_other_forms(bucket, source, target, expected):
    assert rows(bucket.select("SELECT _1, _2 FROM S3Object WHERE _2 = 'Grace'", source, target)) == expected


def test_json_has_the_names_of_the_header_or_the_statement(bucket):
    found = rows(bucket.select("SELECT * FROM S3Object LIMIT 1", target={"JSON": {}}))
    assert json.loads(found) == {"id": "1", "name": "Ada", "city": "London, UK", "age": "36"}
    found = rows(bucket.select("SELECT name AS who, id FROM S3Object LIMIT 1", target={"JSON": {}}))
    assert json.loads(found) == {"who": "Ada", "id": "1"}


def test_quotes_are_taken_off_where_they_need_not_be(bucket):
    bucket.put(b'"a","b c"\n"d,e",f\n')
    assert rows(bucket.select("SELECT * FROM S3Object", {"CSV": {}})) == 'a,b c\n"d,e",f\n'


def test_compressed_objects_of_several_members(bucket):
    bucket.put(gzip.compress(PEOPLE[:40]) + gzip.compress(PEOPLE[40:]))
    events = bucket.select("SELECT id FROM S3Object WHERE age < 40", {**CSV, "CompressionType": "GZIP"})
    assert rows(events) == "1\n"
    stats = next(one["Stats"]["Details"] for one in events if "Stats" in one)
    assert stats["BytesProcessed"] == len(PEOPLE)


def test_a_scan_range_reads_the_records_that_begin_in_it(bucket):
    lines = b"".join(b"%04d,x\n" % number for number in range(1000))
    bucket.put(lines)
    found = ""
    for start in range(0, len(lines), 1111):
        scan = {"Start": start, "End": start + 1110}
        found += rows(bucket.select("SELECT * FROM S3Object", {"CSV": {}}, ScanRange=scan))
    assert found.encode() == lines
    assert all(asked for _, _, asked in bucket.swift.requests[1:]), "only the range is read"


def test_progress_is_reported_when_asked_for(bucket):
    events = bucket.select("SELECT id FROM S3Object", RequestProgress={"Enabled": True})
    assert any("Progress" in one for one in events)
    assert not any("Progress" in one for one in bucket.select("SELECT id FROM S3Object"))


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        ({"sql": "SELECT nmae FROM S3Object"}, "InvalidRequest", "did you mean `name`"),
        ({"sql": "SELECT id FROM people"}, "ParseUnexpectedToken", "S3Object"),
        ({"sql": "SELECT id FROM S3Object.items"}, "ParseUnexpectedToken", "one table"),
        ({"sql": "SELECT id FROM S3Object WHERE"}, "ParseUnexpectedToken", "it ends"),
        ({"sql": "SELECT AVG(age) FROM S3Object"}, "ParseUnexpectedToken", "`AVG`"),
        ({"sql": "SELECT id FROM S3Object LIMIT few"}, "ParseUnexpectedToken", "whole number"),
        ({"sql": "DELETE FROM S3Object"}, "ParseUnexpectedToken", "SELECT"),
        ({"sql": "SELECT id FROM S3Object", "source": {"CSV": {}}}, "InvalidColumnIndex", "_1"),
        ({"source": {"JSON": {"Type": "LINES"}}}, "NotImplemented", "JSON"),
        ({"source": {"Parquet": {}}}, "NotImplemented", "Parquet"),
        ({"source": {**CSV, "CompressionType": "BZIP2"}}, "InvalidCompressionFormat", "BZIP2"),
        ({"source": {**CSV, "CompressionType": "GZIP"}}, "InvalidRequest", "GZIP"),
        ({"source": {"CSV": {"Comments": "#"}}}, "NotImplemented", "Comments"),
        ({"source": {"CSV": {"RecordDelimiter": "|"}}}, "InvalidTextEncoding", "RecordDelimiter"),
        ({"source": {"CSV": {"QuoteEscapeCharacter": "\\"}}}, "NotImplemented", "doubled"),
        ({"ScanRange": {"Start": 9, "End": 5}}, "InvalidScanRange", "9"),
        ({"ScanRange": {"Start": 9999}}, "InvalidRange", ""),
    ],
)
def test_unsupported_requests_are_s3_errors(bucket, change, code, word):
    sql = change.pop("sql", "SELECT * FROM S3Object")
    with pytest.raises(ClientError) as refused:
        bucket.select(sql, **change)
    error = refused.value.response["Error"]
    assert error["Code"] == code
    assert word in error["Message"]


def test_names_that_xml_does_not_know_do_not_break_the_error(bucket):
    bucket.put(b"a\x01b,\xff\n1,2\n")
    with pytest.raises(ClientError, match="no column `c`: there are a b"):
        bucket.select("SELECT c FROM S3Object")
    found = rows(bucket.select("SELECT * FROM S3Object", target={"JSON": {}}))
    assert json.loads(found) == {"a\x01b": "1", "\ufffd": "2"}


def test_an_object_that_is_not_there_and_a_wrong_key(bucket):
    wanted = {"Expression": "SELECT * FROM S3Object", "ExpressionType": "SQL", "Bucket": "bucket"}
    wanted |= {"InputSerialization": {"CSV": {}}, "OutputSerialization": {"CSV": {}}}
    with pytest.raises(ClientError, match="NoSuchKey"):
        bucket.client().select_object_content(Key="nothing.csv", **wanted)
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        bucket.client(key="guessed").select_object_content(Key="people.csv", **wanted)


def test_damage_in_the_middle_is_an_error_in_the_stream(bucket):
    packed = gzip.compress(b"".join(b"%d,row\n" % number for number in range(500_000)), 1)
    bucket.put(packed[: len(packed) // 2], piece=65536)
    with pytest.raises(EventStreamError, match="ends early"):
        bucket.select("SELECT * FROM S3Object", {"CSV": {}, "CompressionType": "GZIP"})


def test_reading_ends_with_the_limit(bucket):
    bucket.put(b"".join(b"%d,row\n" % number for number in range(500_000)), piece=65536)
    events = bucket.select("SELECT * FROM S3Object LIMIT 2", {"CSV": {}})
    assert rows(events) == "0,row\n1,row\n"
    stats = next(one["Stats"]["Details"] for one in events if "Stats" in one)
    assert stats["BytesScanned"] < 2 << 20


def test_other_requests_pass_to_s3api(bucket):
    got = bucket.client().get_object(Bucket="bucket", Key="people.csv")
    assert got["Body"].read() == PEOPLE


def test_it_must_stand_left_of_s3api():
    with pytest.raises(ValueError, match="left of s3api"):
        middleware.S3Select(FakeSwift(), None)


def test_messages_are_cut_where_s3_clients_expect_it():
    messages = list(event_stream.records(b"x" * (event_stream.LARGEST + 1)))
    assert [len(one) > event_stream.LARGEST for one in messages] == [True, False]
