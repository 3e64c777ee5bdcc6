"""A Tempest client whose methods are the operations of the OpenAPI document at ``/schema`` of the API.

``client.update_policy(policy_id=…, if_match=…, body={…}, wait=30)`` calls the operation ``update_policy``.  Its other
parameters are keyword arguments (:class:`~sluice_tempest_plugin.openapi.Operation`); the body is data for JSON, bytes
for anything else.
"""

from __future__ import annotations

import functools
import json
from typing import Any, ClassVar

from tempest.lib.common import rest_client

from sluice_tempest_plugin.openapi import JSON, Description, Operation


class SluiceClient(rest_client.RestClient):
    """Calls of the API as one user; errors are those of :mod:`tempest.lib.exceptions`."""

    #: Address of an API → its document; read once in each test process.
    _descriptions: ClassVar[dict[str, Description]] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._call, self._description().operation(name))

    def _description(self) -> Description:
        url = self.base_url
        if url not in self._descriptions:
            response, body = self.get("/schema")
            self.expected_success(200, response.status)
            self._descriptions[url] = Description(json.loads(body))
        return self._descriptions[url]

    def _call(self, operation: Operation, body: Any = None, **parameters: Any) -> Any:
        url, headers = operation.request(parameters)
        headers["Accept"] = "*/*"
        if body is not None:
            headers["Content-Type"] = operation.content_type
            body = json.dumps(body) if operation.content_type == JSON else body
        response, content = self.request(operation.method, url, headers=headers, body=body)
        self.expected_success(operation.success, response.status)
        if content and response["content-type"] != JSON:
            return rest_client.ResponseBodyData(response, content)
        found = json.loads(content) if content else None
        self._description().check(operation, response.status, found)
        return rest_client.ResponseBody(response, found)
