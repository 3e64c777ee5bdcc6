"""``python -m tests.support.recordings.record_environs``: records the environs that Swift's auth middlewares pass on.

Starts Swift with a real Keystone, and beside it proxies with a :mod:`.environ_filter` in place of
``egg:openstack-sluice#proxy``: one with tempauth, two with Keystone, with the access lists of S3
and without. Sends each request of the tables below, and writes ``environs.json`` with the versions of the recorded
programs. Ids, tokens, signatures and ports are replaced, equal ones by equal ones, so that a second recording differs
only where the programs do.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.support.cluster.s3_differential import client_of
from tests.support.recordings.environs import PATH

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST, free_port, probe
from sluice_aio.base.setup import KEYSTONE, TEMPAUTH, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import PLAIN_SWIFT, Program, swift_command
from sluice_aio.conf.proxy import proxy_conf
from sluice_aio.keystone import seed, venv
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp, Token, swift_client

ROOT: Final = Path(__file__).parents[3]
#: Recording proxy → its auth middleware, and whether s3api has access lists of its own.
PROXIES: Final = {"tempauth": (TEMPAUTH, "yes"), "keystone": (KEYSTONE, "no"), "keystone-s3-acl": (KEYSTONE, "yes")}
RESELLER: Final = "rhea"
KEY: Final = "temporary"
PYTHON_PACKAGES: Final = ("swift", "keystonemiddleware", "keystoneauth1", "python-keystoneclient")


class RecordingProxy(Program):
    """A proxy of Swift with the filter, which is loaded from this clone."""

    def __init__(self, layout: Layout, name: str) -> None:
        auth, acl = PROXIES[name]
        port, self.lines = free_port(), layout.logs / f"{name}.lines"
        text = proxy_conf(layout, plain=True, workers=0, setup=Setup(parts=frozenset(), auth=auth))
        text = text.replace(f"bind_port = {layout.ports['plain']}", f"bind_port = {port}")
        text = text.replace(" proxy-logging proxy-server", " recorder proxy-logging proxy-server")
        text = text.replace("s3_acl = yes", f"s3_acl = {acl}")
        factory = "tests.support.recordings.environ_filter:filter_factory"
        text += f"\n[filter:recorder]\npaste.filter_factory = {factory}\npath = {self.lines}\n"
        path = layout.swift_dir / f"{name}.conf"
        path.write_text(text, encoding="utf-8")
        command = swift_command(layout, "swift-proxy-server", str(path), "-v")
        self.http = SwiftHttp(f"http://{HOST}:{port}")
        super().__init__(name, port, layout.logs, command, self._serves)

    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT)}

    def _serves(self) -> bool:
        return b" 200 " in probe(self.port, b"GET /healthcheck HTTP/1.0\r\n\r\n")[:16]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def recorded(self) -> list[dict[str, Any]]:
        """The lines written since the last call."""
        found = [json.loads(line) for line in self.lines.read_text(encoding="utf-8").splitlines()]
        self.lines.write_text("", encoding="utf-8")
        return found


def temp_url(account: str, method: str) -> str:
    """The path of an object with the query that allows ``method`` without a token."""
    expires, path = int(time.time()) + 600, f"{account}/c/o"
    signature = hmac.new(KEY.encode(), f"{method}\n{expires}\n{path}".encode(), hashlib.sha256).hexdigest()
    return f"{path}?temp_url_sig={signature}&temp_url_expires={expires}"


def form(account: str) -> tuple[dict[str, str], bytes]:
    """A form with a file as a browser sends it, and its header."""
    path, expires, bound = f"{account}/c/", int(time.time()) + 600, "bound"
    text = f"{path}\n\n1000\n1\n{expires}"
    signature = hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
    fields = {"max_file_size": "1000", "max_file_count": "1", "expires": str(expires), "signature": signature}
    parts = [f'--{bound}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
    parts.append(
        f'--{bound}\r\nContent-Disposition: form-data; name="file"; filename="o"\r\n\r\nform\r\n--{bound}--\r\n'
    )
    return {"Content-Type": f"multipart/form-data; boundary={bound}"}, "".join(parts).encode()


class Recording:
    """Sends requests and keeps the recorder's lines of each."""

    def __init__(self) -> None:
        self.environs: dict[str, Any] = {}

    @contextlib.contextmanager
    def of(self, proxy: RecordingProxy, name: str) -> Iterator[None]:
        proxy.recorded()
        yield
        about_objects = [one for one in proxy.recorded() if one["before"]["PATH_INFO"].count("/") == 4]
        self.environs[f"{proxy.name} {name}"] = about_objects[-1]

    def swift(self, proxy: RecordingProxy, name: str, method: str, target: str, token: str = "", **more: Any) -> None:
        headers = {**({"X-Auth-Token": token} if token else {}), **more.get("headers", {})}
        with self.of(proxy, name):
            answer = proxy.http.raw(method, target, headers, more.get("body", b""))
        expected = more.get("status", range(200, 300))
        assert answer.status in expected, (proxy.name, name, answer)


def record_account(
    recording: Recording, proxy: RecordingProxy, owner: SwiftHttp, stranger: SwiftHttp, acl: str
) -> None:
    """Requests to both auth middlewares: by an owner of ``c``, by ``stranger``, without a token."""
    account, mine = owner.account, owner.token
    assert owner.request("POST", x_account_meta_temp_url_key=KEY).status == 204
    for container, readers in (("c", acl), ("public", ".r:*"), ("shut", "")):
        assert owner.request("PUT", container, x_container_read=readers).status in (201, 202)
    index = owner.request("POST", "public", x_container_read=".r:*,.rlistings", x_container_meta_web_index="o")
    assert index.status == 204
    for container in ("public", "shut"):
        assert owner.request("PUT", f"{container}/o", b"bytes").status == 201
    say = recording.swift
    say(proxy, "owner", "PUT", f"{account}/c/o", mine, body=b"bytes")
    say(proxy, "owner copies", "PUT", f"{account}/c/copy", mine, headers={"X-Copy-From": "c/o"})
    say(proxy, "stranger in the access list", "GET", f"{account}/c/o", stranger.token)
    say(proxy, "stranger", "GET", f"{account}/shut/o", stranger.token, status=(403,))
    say(proxy, "stranger reads what is public", "GET", f"{account}/public/o", stranger.token)
    say(proxy, "nobody", "GET", f"{account}/shut/o", status=(401,))
    say(proxy, "nobody reads what is public", "GET", f"{account}/public/o")
    say(proxy, "tempurl", "PUT", temp_url(account, "PUT"), body=b"bytes")
    say(proxy, "tempurl with the token of a stranger", "GET", temp_url(account, "GET"), stranger.token)
    headers, body = form(account)
    say(proxy, "formpost", "POST", f"{account}/c/", headers=headers, body=body)
    say(proxy, "staticweb", "GET", f"{account}/public/")
    claims = {"X-Identity-Status": "Confirmed", "X-Roles": "admin", "X-User-Id": "u", "X-Project-Id": account[9:]}
    say(proxy, "nobody who claims to be somebody", "GET", f"{account}/public/o", headers=claims)


def record_s3(recording: Recording, proxy: RecordingProxy, name: str, keys: tuple[str, str], bucket: str) -> None:
    """An upload by S3 and a download."""
    client = client_of(proxy.url, *keys)
    try:
        client.create_bucket(Bucket=bucket)
        with recording.of(proxy, f"s3 {name} writes"):
            client.put_object(Bucket=bucket, Key="o", Body=b"bytes")
        with recording.of(proxy, f"s3 {name} reads"):
            client.get_object(Bucket=bucket, Key="o")["Body"].read()
    finally:
        client.close()


def add_reseller(keystone: KeystoneHttp, project: str) -> str:
    """Create a user with the role for all accounts; return the password."""
    user = keystone.ensure("user", {"name": RESELLER, "password": RESELLER, "domain_id": DOMAIN})
    role = keystone.ensure("role", {"name": "ResellerAdmin"})
    keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{role}")
    return RESELLER


def logins(layout: Layout) -> dict[str, Token]:
    """The tokens of all users."""
    keystone = KeystoneHttp(layout.keystone_url)
    tokens = {name: keystone.login(name, secret, project) for name, (secret, project, _) in seed.PEOPLE.items()}
    keystone.token = keystone.login(seed.ADMIN, seed.password(layout, seed.ADMIN), "admin").id
    secret = add_reseller(keystone, tokens["ulf"].project_id)
    return {**tokens, RESELLER: keystone.login(RESELLER, secret, "umbrella")}


def record_keystone(recording: Recording, proxies: Mapping[str, RecordingProxy], tokens: Mapping[str, Token]) -> None:
    alice, ulf = tokens["alice"], tokens["ulf"]
    proxy = proxies["keystone"]
    owner, stranger = swift_client(proxy.url, alice), swift_client(proxy.url, ulf)
    record_account(recording, proxy, owner, stranger, f"{ulf.project_id}:{ulf.user_id}")
    recording.swift(proxy, "administrator", "PUT", f"{owner.account}/c/o", tokens["ada"].id)
    recording.swift(proxy, "reader", "GET", f"{owner.account}/c/o", tokens["rita"].id)
    recording.swift(proxy, "reseller", "GET", f"{owner.account}/shut/o", tokens[RESELLER].id)


def record_tempauth(recording: Recording, proxy: RecordingProxy) -> None:
    owner = SwiftHttp(proxy.url).login("test:tester", "testing")
    stranger = SwiftHttp(proxy.url).login("test2:tester2", "testing2")
    record_account(recording, proxy, owner, stranger, "test2:tester2,test:tester3")
    for name, user, key in (("without rights", "test:tester3", "testing3"), ("reseller", "test:tester6", "testing6")):
        token = SwiftHttp(proxy.url).login(user, key).token
        recording.swift(proxy, name, "GET", f"{owner.account}/c/o", token)
    record_s3(recording, proxy, "owner", ("test:tester", "testing"), "bucket-t")


def replaced(text: str, ids: Mapping[str, str]) -> str:
    """``text`` without values that differ from one recording to the next."""
    for found, name in ids.items():
        text = text.replace(found, hashlib.md5(name.encode(), usedforsecurity=False).hexdigest())
    text = re.sub(r'("HTTP_X_(AUTH|STORAGE)_TOKEN": ")[^"]*', r"\1token", text)
    text = re.sub(r"(temp_url_sig=)[0-9a-f]+", r"\g<1>" + "0" * 64, text)
    text = re.sub(r"(temp_url_expires=)[0-9]+", r"\g<1>1700000000", text)
    text = re.sub(r'("HTTP_AUTHORIZATION": ")[^"]*', r"\1signature", text)
    return re.sub(HOST.replace(".", r"\.") + r":[0-9]+", f"{HOST}:8080", text)


def versions() -> dict[str, str]:
    of_keystone = [str(venv.python()), "-c", "from importlib.metadata import version; print(version('keystone'))"]
    keystone = subprocess.run(of_keystone, capture_output=True, text=True, check=True).stdout.strip()
    return {"keystone": keystone, **{name: version(name) for name in PYTHON_PACKAGES}}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    recording = Recording()
    try:
        layout = Layout.free(folder)
        setup = Setup(parts=frozenset(), auth=KEYSTONE)
        with Cluster(layout, PLAIN_SWIFT, setup=setup), contextlib.ExitStack() as running:
            proxies = {name: running.enter_context(RecordingProxy(layout, name)) for name in PROXIES}
            for proxy in proxies.values():
                proxy.lines.touch()
            tokens = logins(layout)
            record_tempauth(recording, proxies["tempauth"])
            record_keystone(recording, proxies, tokens)
            keystone = KeystoneHttp(layout.keystone_url)
            for proxy in (proxies["keystone"], proxies["keystone-s3-acl"]):
                record_s3(recording, proxy, "owner", keystone.s3_keys(tokens["alice"]), f"bucket-{proxy.name}")
            ids = {token.user_id: f"user {name}" for name, token in tokens.items()}
            ids |= {tokens[name].project_id: f"project of {name}" for name in ("alice", "ulf")}
    except BaseException:
        print(f"what was logged is in {folder}")
        raise
    text = json.dumps({"versions": versions(), "environs": recording.environs}, indent=1, sort_keys=True)
    PATH.write_text(replaced(text, ids) + "\n", encoding="utf-8")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
