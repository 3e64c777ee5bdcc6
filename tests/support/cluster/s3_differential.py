"""Two S3 clients with the same requests to Swift with Sluice and to plain Swift; their responses must not differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

#: Values that must differ: ids, the moment, the two hosts, and boto3's own metadata.
MOMENTS: Final = {
    "ResponseMetadata",
    "LastModified",
    "UploadId",
    "Location",
    "Date",
    "Initiated",
    "VersionId",
    "Owner",
    "Initiator",
}
#: Headers of a response that must differ.
HEADERS: Final = {
    "date",
    "last-modified",
    "x-trans-id",
    "x-openstack-request-id",
    "x-amz-request-id",
    "x-amz-id-2",
    "connection",
}


def client_of(url: str, user: str, key: str) -> Any:
    """A boto3 client of the Swift at ``url``, whose s3api authenticates ``user`` by tempauth."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=user,
        aws_secret_access_key=key,
        region_name="us-east-1",
        config=Config(
            s3={"addressing_style": "path"},
            retries={"max_attempts": 1},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


class Both:
    """Calls one method of both clients and compares the responses, refusals included."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.clients = (ours, theirs)

    def __call__(self, method: str, *pairs: Mapping[str, Any], **arguments: Any) -> list[Mapping[str, Any]]:
        """Both responses, which are equal except for values that must differ.

        :param pairs: arguments of the first and of the second client
        :raises AssertionError: when they are not equal
        """
        found = [
            self.ask(client, method, {**arguments, **(pairs[side] if pairs else {})})
            for side, client in enumerate(self.clients)
        ]
        views = [one[0] for one in found]
        if views[0] != views[1]:
            raise AssertionError(f"{method} {sorted(arguments)}: {_difference(*views)}")
        return [one[1] for one in found]

    @staticmethod
    def ask(client: Any, method: str, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """(the compared parts, the whole response)."""
        try:
            answer = getattr(client, method)(**arguments)
        except ClientError as error:
            return (
                error.response["Error"]["Code"],
                error.response["ResponseMetadata"]["HTTPStatusCode"],
            ), error.response
        view = {name: value for name, value in answer.items() if name not in MOMENTS}
        if "Body" in view:
            view["Body"] = answer["Body"].read()
        headers = dict(answer["ResponseMetadata"]["HTTPHeaders"])
        boundary = re.fullmatch(r"multipart/byteranges;\s*boundary=(\w+)", view.get("ContentType", ""))
        if boundary:  # random for each response
            view["Body"] = view["Body"].replace(boundary[1].encode(), b"BOUNDARY")
            view["ContentType"] = headers["content-type"] = "multipart/byteranges"
        for name in ("Contents", "Versions", "Parts", "CommonPrefixes", "Uploads"):
            if name in view:
                view[name] = [{key: value for key, value in row.items() if key not in MOMENTS} for row in view[name]]
        if "Deleted" in view:  # Swift deletes several at once
            view["Deleted"] = sorted(view["Deleted"], key=lambda row: row["Key"])
        for name in ("CopyObjectResult", "CopyPartResult"):
            if name in view:
                view[name] = view[name]["ETag"]
        kept = {
            name: value for name, value in headers.items() if name not in HEADERS and not name.endswith("version-id")
        }
        chunked = (
            {"transfer-encoding", "content-length"}
            if method.startswith(("list", "complete", "create", "copy"))
            else set()
        )
        return (view, {name: value for name, value in kept.items() if name not in chunked}), answer


def _difference(mine: Any, theirs: Any) -> str:
    """Two views, shortened where they hold bodies."""
    return f"{str(mine)[:1000]} and {str(theirs)[:1000]}"
