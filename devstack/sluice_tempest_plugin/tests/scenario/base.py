"""A member's containers and objects, and their stored form."""

from __future__ import annotations

from typing import Any

from tempest import config
from tempest.lib.common import http

from sluice_tempest_plugin.tests.base import BaseSluiceTest

CONF = config.CONF


class BaseScenarioTest(BaseSluiceTest):
    """Uploads and downloads with Tempest's own clients of Swift, found in the catalogue."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.service_available.swift:
            raise cls.skipException("swift is not available")

    @classmethod
    def setup_clients(cls) -> None:
        super().setup_clients()
        cls.containers = cls.os_project_member.container_client
        cls.objects = cls.os_project_member.object_client

    def create_container(self) -> str:
        """The name of a new container of the member's project."""
        container = self.name("container")
        self.containers.create_container(container)
        self.undo(self.containers.delete_container, container)
        return container

    def upload(self, container: str, data: bytes, name: str = "") -> str:
        """Upload an object that holds ``data``; return its name."""
        name = name or self.name("object")
        self.objects.create_object(container, name, data)
        self.undo(self.objects.delete_object, container, name)
        return name

    def assert_reads_back(self, container: str, name: str, data: bytes, client: Any = None) -> None:
        """An object has the uploaded bytes, also when read from its middle."""
        client = client or self.objects
        self.assertEqual(data, client.get_object(container, name)[1])
        start, end = len(data) // 3, len(data) // 2
        middle = client.get_object(container, name, metadata={"Range": f"bytes={start}-{end}"})[1]
        self.assertEqual(data[start : end + 1], middle)

    def stored_sizes(self, container: str, name: str) -> list[int]:
        """Stored bytes of each replica of an object, as the object servers report them."""
        locality = self.admin.show_locality(account=self.account, container=container, object_name=name)
        headers = {"X-Backend-Storage-Policy-Index": str(locality["storage_policy_index"])}
        connection = http.ClosingHttp()
        sizes = []
        for one in locality["locations"]:
            response, _ = connection.request(one["url"], "HEAD", headers=headers)
            if response.status == 200:
                sizes.append(int(response["content-length"]))
        self.assertNotEqual([], sizes, f"no object server has {container}/{name}")
        return sizes
