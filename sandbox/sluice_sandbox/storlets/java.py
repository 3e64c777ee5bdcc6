"""Builds the parts of Java storlets for a container: Storlets' Java daemon, from its source distribution.

The wheel has no Java code.  The build runs once, on one machine, and needs pip, a JDK 17, Maven (for three libraries
from Maven Central) and gcc; the result is a folder of five jars and a library, kept in the cache.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError
from sluice_sandbox.files import create_folder


def unpack(archive: Path, into: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Write the regular files of a tar archive whose name is ``wanted`` below ``into``; links are left out.

    As with :data:`tarfile.data_filter`, which Python before 3.11.4 does not have, no file is written elsewhere.

    :raises PeerError: when it is not a complete tar archive, or a name leads out of ``into``; the extraction stops
        there
    """
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and wanted(member.name):
                    _write(tar, member, into.resolve())
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise PeerError(f"`{archive.name}` is no archive that can be unpacked: {error}") from error


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    target = (root / member.name).resolve()
    if not target.is_relative_to(root):
        raise PeerError(f"`{member.name}` in an archive leads out of the folder that it is unpacked to")
    target.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # it is a file
    with content, open(target, "wb") as out:
        shutil.copyfileobj(content, out)


LIBRARIES: Final = (
    ("com.google.code.gson", "gson", "2.14.0"),
    ("ch.qos.logback", "logback-classic", "1.6.3"),
    ("org.slf4j", "slf4j-api", "2.0.18"),
)
#: The Java version of the container; the JDK here may be newer.
RELEASE: Final = "17"

Say = Callable[[str], None]


def build(cache: Path, say: Say = lambda line: None) -> Path:
    """Return the folder of jars below ``cache``; build it if it is missing.

    :raises PeerError: when a tool is missing or fails
    """
    try:
        wanted = version("storlets")
    except PackageNotFoundError as error:
        raise PeerError("Storlets is not installed, expected the extra `sandbox`") from error
    target = cache / f"java-{wanted}"
    if target.is_dir():
        return target
    say(f"building the Java daemon of Storlets {wanted}")
    with create_folder(target) as jars, tempfile.TemporaryDirectory(prefix="making-", dir=cache) as folder:
        work = Path(folder)
        source = _source(work, wanted)
        _libraries(work, jars)
        _compile(source, jars)
        for path in (jars, *jars.iterdir()):
            path.chmod(0o755)
    return target


def _source(work: Path, wanted: str) -> Path:
    """Download and unpack the source distribution."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--no-binary", "storlets", "--dest", str(work), f"storlets=={wanted}"])
    unpack(work / f"storlets-{wanted}.tar.gz", work)
    return work / f"storlets-{wanted}" / "src"


def _libraries(work: Path, jars: Path) -> None:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in LIBRARIES
    )
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>sluice</groupId>'
        f"<artifactId>storlets</artifactId><version>1</version><dependencies>{wanted}</dependencies></project>"
    )
    goal = "dependency:copy-dependencies"
    where = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    _run([_tool("mvn"), "--batch-mode", "--quiet", "--file", str(work / "pom.xml"), goal, *where])


def _compile(source: Path, jars: Path) -> None:
    """Compile SBus with its native part, then its dependants, in the order of their dependencies."""
    for name, jar in (("SBus", "SBusJavaFacade.jar"), ("SCommon", "SCommon.jar"), ("SDaemon", "SDaemon.jar")):
        room = source / "java" / name
        files = sorted((room / "src" / "main").rglob("*.java"))
        headers = ["-h", str(room)] if name == "SBus" else []
        options = ["-nowarn", "--release", RELEASE, "-cp", f"{jars}/*", "-d", str(room / "bin"), *headers]
        _run([_tool("javac"), *options, *map(str, files)])
        _run([_tool("jar"), "--create", "--file", str(jars / jar), "-C", str(room / "bin"), "."])
    bus = source / "java" / "SBus"
    include = Path(os.path.realpath(_tool("javac"))).parent.parent / "include"
    places = [f"-I{include}", f"-I{include / 'linux'}", f"-I{source / 'c' / 'sbus'}", f"-I{bus}"]
    code = [str(bus / "SBusJNI.c"), str(source / "c" / "sbus" / "sbus.c")]
    _run([_tool("gcc"), "-shared", "-fPIC", "-O2", "-w", "-o", str(jars / "libjsbus.so"), *places, *code])


def _tool(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise PeerError(f"`{name}` is not installed, and Java storlets need it once")
    return program


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-1500:].decode("utf-8", "replace")
        raise PeerError(f"`{argv[0]}` ended with {done.returncode}: {tail}")
