"""The image of tenants' containers: a small Debian, built on the machine.

It is not pulled from a registry.  ``debootstrap`` makes a root file system from the Debian archive, which is kept as a
tar file in a cache folder; an engine imports it in seconds.
The image's name has the digest of its recipe, so a changed recipe is another image and an unchanged one is built only
once.  The image has no code of Sluice or Storlets: that is mounted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import CallerError, PeerError
from sluice_sandbox.files import file_lock

REPOSITORY: Final = "sluice-storlets"
LABEL: Final = "sluice.image"
#: Files that filters do not need, left out to make the tar file smaller.
_EMPTIED: Final = (
    "dev",
    "proc",
    "sys",
    "tmp",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/info",
)
_MOUNTED: Final = ("mnt/channels", "var/lib/storlets", "usr/local/lib/storlets")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """The recipe of an image; ``mirror`` is the source of packages, and does not change the image."""

    suite: str = "bookworm"
    packages: tuple[str, ...] = ("python3",)
    mirror: str = "http://deb.debian.org/debian"
    revision: int = 1

    def digest(self) -> str:
        """Digest of all fields that change the image."""
        facts = {**asdict(self), "emptied": _EMPTIED, "mounted": _MOUNTED}
        del facts["mirror"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def name(self) -> str:
        """Name of the image on every engine."""
        return f"{REPOSITORY}:{self.digest()[:16]}"


PYTHON: Final = ImageRecipe()
JAVA: Final = ImageRecipe(packages=("python3", "openjdk-17-jre-headless"))
RECIPES: Final = {"python": PYTHON, "java": JAVA}


def build(recipe: ImageRecipe, cache: Path, engine: str, say: Say = lambda line: None) -> str:
    """Build the image of ``recipe`` in the engine at ``engine`` if it is missing; return its name.

    :raises CallerError: when the root file system must be built and the user is not root
    :raises PeerError: when debootstrap or the engine fails
    """
    from docker.errors import ImageNotFound

    from sluice_sandbox.docker.client import docker_client

    name = recipe.name()
    with docker_client(engine, 600.0) as client:
        with contextlib.suppress(ImageNotFound):
            client.images.get(name)
            return name
        tarball = root_file_system(recipe, cache, say)
        say(f"importing {name}")
        repository, _, tag = name.partition(":")
        client.api.import_image(
            str(tarball), repository=repository, tag=tag, changes=[f"LABEL {LABEL}={recipe.digest()}"]
        )
        client.images.get(name)
        return name


def images(engine: str) -> list[dict[str, Any]]:
    """Return Sluice's images in the engine at ``engine``: name, size in bytes, digest of the recipe.

    :raises PeerError: when the engine does not answer
    """
    from sluice_sandbox.docker.client import docker_client

    with docker_client(engine) as client:
        return [
            {"name": tag, "size": one.attrs["Size"], "digest": one.labels[LABEL]}
            for one in client.images.list(filters={"label": LABEL})
            for tag in one.tags
        ]


def root_file_system(recipe: ImageRecipe, cache: Path, say: Say = lambda line: None) -> Path:
    """Return the tar file of ``recipe``; build it if it is not in ``cache``.

    Several processes may call this at once: one builds it, the others wait.

    :raises CallerError: when it must be built and the user is not root
    :raises PeerError: when debootstrap is not installed or fails
    """
    cache.mkdir(parents=True, exist_ok=True)
    tarball = cache / f"rootfs-{recipe.digest()[:16]}.tar"
    with file_lock(cache / "lock"):
        if not tarball.exists():
            say(f"making a Debian {recipe.suite} with {', '.join(recipe.packages)} (a minute the first time)")
            with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as folder:
                root = Path(folder, "root")
                _debootstrap(recipe, root, Path(folder, "log"))
                _pack(root, Path(folder, "tar"))
                os.replace(Path(folder, "tar"), tarball)
    return tarball


def _debootstrap(recipe: ImageRecipe, root: Path, log: Path) -> None:
    if os.geteuid() != 0:
        raise CallerError("making the image needs root, expected a cached one or `sudo sluice-sandbox image build`")
    program = shutil.which("debootstrap", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")
    if program is None:
        raise PeerError("debootstrap is not installed")
    argv = [
        program,
        "--variant=minbase",
        f"--include={','.join(recipe.packages)}",
        recipe.suite,
        str(root),
        recipe.mirror,
    ]
    with open(log, "wb") as output:
        # on exit, unmounts what packages mounted
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        tail = log.read_bytes()[-1000:].decode("utf-8", "replace")
        raise PeerError(f"debootstrap ended with {done.returncode}: {tail}")


def _pack(root: Path, tarball: Path) -> None:
    """Write ``root`` as a tar file, without the content of the folders in ``_EMPTIED``, with mount points."""
    for name in (*_EMPTIED, *_MOUNTED):
        (root / name).mkdir(parents=True, exist_ok=True)

    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if entry.name.removeprefix("./").startswith(inside) else entry

    inside = tuple(f"{name}/" for name in _EMPTIED)
    with tarfile.open(tarball, "w") as archive:
        archive.add(root, arcname=".", filter=chosen)
