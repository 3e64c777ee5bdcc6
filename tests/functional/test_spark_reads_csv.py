"""A stock Spark reads CSV objects with filters pushed down: the same result, with fewer bytes on the wire."""

import contextlib
import logging
import os
import random
import socket
import sys
import threading

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluice_spark import register

#: Logs its exit when the tests' log is closed already.
logging.getLogger("py4j").setLevel(logging.WARNING)

#: Spark's launcher forks to start its JVM, about which an imported eventlet warns.
pytestmark = [pytest.mark.probe, pytest.mark.filterwarnings("ignore:Using fork:DeprecationWarning")]

SCHEMA = "id LONG, time STRING, meter STRING, kwh DOUBLE, note STRING"


class Relay:
    """Forwards connections to a server and counts the bytes of its responses."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.answered = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._port))
                for pair in ((near, far, False), (far, near, True)):
                    self._threads.append(threading.Thread(target=self._pass, args=pair))
                    self._threads[-1].start()

    def _pass(self, source, target, counted):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
                if counted:
                    with self._lock:
                        self.answered += len(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            if counted:
                one.close()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._threads:
            one.join(10)


@pytest.fixture(scope="module")
def spark(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def fresh(swift):
    """The account on a new connection: the old one was closed while the JVM started."""
    swift.close()
    return swift


@pytest.fixture
def relay(cluster):
    running = Relay(cluster.layout.ports["proxy"])
    yield running
    running.close()


def meters(count, seed):
    dice = random.Random(seed)
    rows = ["id,time,meter,kwh,note"]
    for number in range(count):
        note = dice.choice(["fine", '"late, again"', '"said ""ok"""', "", '""', "größer"])
        rows.append(f"{number},2026-11-{number % 28 + 1:02d},m{dice.randrange(50)},{dice.uniform(0, 100):.3f},{note}")
    return ("\n".join(rows) + "\n").encode()


def test_the_same_answers_as_sparks_own_reader_for_fewer_bytes(spark, fresh, policies, relay, tmp_path):
    fresh.request("PUT", "metering")
    policies("FOR CONTAINER AUTH_test/metering DO SET csv_select")
    size = 0
    for seed in range(2):
        data = meters(8_000, seed)
        size += len(data)
        (tmp_path / f"part-{seed}.csv").write_bytes(data)
        assert fresh.request("PUT", f"metering/2026/part-{seed}.csv", body=data).status == 201
    url = f"http://127.0.0.1:{relay.port}/v1/AUTH_test"
    ours = (
        spark.read.format("sluice")
        .schema(SCHEMA)
        .options(url=url, token=fresh.token, partitionBytes=str(192 * 1024))
        .load("metering/2026/")
    )
    theirs = spark.read.schema(SCHEMA).options(header="true", escape='"').csv(str(tmp_path))
    assert ours.rdd.getNumPartitions() >= 4

    questions = {
        "everything": lambda rows: rows,
        "a tenth": lambda rows: rows.filter("kwh < 10"),
        "texts": lambda rows: rows.filter((f.col("meter") == "m7") & f.col("note").isNotNull()),
        "not": lambda rows: rows.filter(~f.col("note").isin("fine", "größer") & (f.col("id") % 7 == 0)),
        "patterns": lambda rows: rows.filter(f.col("note").contains("said") & f.col("note").endswith('"')),
        "nothing": lambda rows: rows.filter("id > 100000"),
    }
    wire = {}
    for name, question in questions.items():
        before = relay.answered
        found = sorted(map(tuple, question(ours).collect()), key=repr)
        wire[name] = relay.answered - before
        print(f"{name}: {wire[name]} bytes on the wire for {size} bytes of CSV")
        assert found == sorted(map(tuple, question(theirs).collect()), key=repr), name
    assert wire["everything"] < 1.2 * size
    assert wire["a tenth"] < wire["everything"] / 5
    assert wire["texts"] < wire["everything"] / 5

    before = relay.answered
    narrow = spark.read.format("sluice").options(url=url, token=fresh.token, columns="meter", inferSchema="true")
    counted = narrow.load("metering/2026/").groupBy("meter").count().collect()
    assert sorted(map(tuple, counted)) == sorted(map(tuple, theirs.groupBy("meter").count().collect()))
    assert relay.answered - before < wire["everything"] / 5


def test_a_container_without_a_policy_is_an_error_that_says_what_to_do(cluster, spark, fresh):
    fresh.request("PUT", "bare")
    assert fresh.request("PUT", "bare/a.csv", body=b"a,b\n1,2\n").status == 201
    bare = spark.read.format("sluice").options(url=cluster.proxy_url + fresh.account, token=fresh.token)
    with pytest.raises(PySparkException, match="DO SET csv_select"):
        bare.load("bare/a.csv").collect()
