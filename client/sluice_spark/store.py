"""The object store for the data source: log in, list, read the output of csv_select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import requests

from sluice_spark.options import Options, SluiceReadError

_PAGE: Final = 10_000
_PIECE: Final = 1 << 20


class Store:
    """One session; each task and the driver have their own."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._session = requests.Session()
        self._url = options.url
        if options.token:
            self._session.headers["X-Auth-Token"] = options.token
        else:
            self._log_in()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _log_in(self) -> None:
        options = self._options
        answer = self._get(options.auth_url, {"X-Auth-User": options.user, "X-Auth-Key": options.key})
        answer.close()
        if not answer.ok or "X-Storage-Url" not in answer.headers:
            raise SluiceReadError(f"`{options.auth_url}` does not let `{options.user}` in: HTTP {answer.status_code}")
        self._url = options.url or answer.headers["X-Storage-Url"]
        self._session.headers["X-Auth-Token"] = answer.headers["X-Auth-Token"]

    def objects(self) -> list[tuple[str, int]]:
        """Return (name in its container, bytes) of every object of the path, by name."""
        container, _, name = self._options.path.partition("/")
        found = [(entry["name"], int(entry["bytes"])) for entry in self._listing(container, name) if "name" in entry]
        exact = [one for one in found if one[0] == name]
        kept = exact or [one for one in found if one[1] and not one[0].endswith("/")]
        if not kept:
            raise SluiceReadError(f"`{self._options.path}` is no object and no prefix of objects")
        return kept

    def _listing(self, container: str, prefix: str) -> Iterator[Mapping[str, Any]]:
        marker = ""
        while True:
            query = {"format": "json", "limit": str(_PAGE), "prefix": prefix, "marker": marker}
            answer = self._get(f"{self._url}/{quote(container)}", {}, query)
            if answer.status_code != 200:
                raise SluiceReadError(f"container `{container}` cannot be listed: HTTP {answer.status_code}")
            entries = answer.json()
            yield from entries
            if len(entries) < _PAGE:
                return
            marker = entries[-1]["name"]

    def select(self, name: str, wish: str, first: int, last: int) -> bytes:
        """Return the output of csv_select for the records of object ``name`` that begin in the bytes first to last.

        :raises SluiceReadError: when the store refuses, or has no csv_select on this object
        """
        container = self._options.path.partition("/")[0]
        headers = {"X-Csv-Select": wish, "X-Csv-Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
        encoded = {key: value.encode() for key, value in headers.items()}
        answer = self._get(f"{self._url}/{quote(container)}/{quote(name)}", encoded)
        with answer:
            if answer.status_code != 200:
                reason = answer.raw.read(2000, decode_content=True).decode("utf-8", "replace").strip()
                raise SluiceReadError(f"`{container}/{name}` cannot be read: HTTP {answer.status_code}: {reason}")
            if "ETag" in answer.headers:  # the output of a filter has no ETag
                raise SluiceReadError(
                    f"`{container}/{name}` came unfiltered: it needs a policy like "
                    f"FOR CONTAINER <tenant>/{container} DO SET csv_select"
                )
            try:
                return b"".join(answer.iter_content(_PIECE))
            except requests.RequestException as error:
                raise SluiceReadError(f"`{container}/{name}` broke off: {error}") from error

    def _get(self, url: str, headers: Mapping[str, Any], query: Mapping[str, str] | None = None) -> requests.Response:
        try:
            return self._session.get(
                url, headers=dict(headers), params=query, timeout=self._options.timeout, stream=query is None
            )
        except requests.RequestException as error:
            raise SluiceReadError(f"`{url}` cannot be reached: {error}") from error
