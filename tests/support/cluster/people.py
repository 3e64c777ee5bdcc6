"""The cluster that tests share, and its users, authenticated by tempauth or Keystone."""

import contextlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.common import USERS
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp, swift_client


@contextlib.contextmanager
def shared_cluster(auth):
    """A cluster with all services of Sluice, and a plain proxy; behind Keystone with the users that tempauth has."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        # its nodes receive the messages that a CollectD would send
        # and its proxies drop a cached container as soon as one writes it: they have one memcached
        motifs = {"copy_sweep": "1", "copy_grace": "20", "motif_url_hosts": "127.0.0.1"}
        listens = {"agent": {"collectd": "true"}}
        setup = Setup(agent_options=listens, motif_options=motifs, auth=auth)
        if auth == KEYSTONE:
            setup = replace(setup, swift_users=True, api_options={"self_service": "compression, csv_select"})
        with Cluster(Layout.free(folder), plain=True, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def login(cluster, user):
    """A token of Keystone for ``alice`` and the other users, for ``admin``, or for ``project:name`` as in tempauth."""
    keystone = KeystoneHttp(cluster.keystone_url)
    if user == seed.ADMIN:
        return keystone.login(user, seed.password(cluster.layout, user), seed.ADMIN)
    if user in seed.PEOPLE:
        password, project, _ = seed.PEOPLE[user]
        return keystone.login(user, password, project)
    project, _, name = user.partition(":")
    return keystone.login(name, USERS[user][0], project)


def swift_as(cluster, user, url=""):
    """Swift for ``user``, through the proxy at ``url`` or the one with Sluice."""
    url = url or cluster.proxy_url
    if cluster.setup.auth == KEYSTONE:
        return swift_client(url, login(cluster, user))
    return SwiftHttp(url).login(user, USERS[user][0])


def s3_keys(cluster, user):
    """Access key and secret with which ``user`` signs requests of S3."""
    if cluster.setup.auth == KEYSTONE:
        return KeystoneHttp(cluster.keystone_url).s3_keys(login(cluster, user))
    return user, USERS[user][0]


def acl_entry(cluster, user):
    """The name of ``user`` in an access list."""
    if cluster.setup.auth == KEYSTONE:
        token = login(cluster, user)
        return f"{token.project_id}:{token.user_id}"
    return user
