"""A real Prometheus that scrapes all endpoints of an API."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from pathlib import Path
from typing import Any

from sluice_aio.base.ports import HOST, probe
from sluice_aio.base.server import Server

ENDPOINTS = {
    "sluice": "/metrics",
    "sluice-bandwidth": "/bw/metrics",
    "sluice-volumes": "/volumes/metrics",
    "sluice-spaces": "/spaces/metrics",
}
_LIMIT = 10.0


class Prometheus(Server):
    """:param api_port: of the API, which it requests each second
    :param token: that it sends
    """

    name = "prometheus"
    patience = 60.0

    def __init__(self, port: int, folder: Path, api_port: int, token: str) -> None:
        super().__init__(port, folder, tied=True)
        secret = folder / "token"
        secret.touch(mode=0o600)
        secret.write_text(token, encoding="utf-8")
        self._config = folder / "prometheus.json"  # JSON is YAML
        authorization = {"credentials_file": str(secret)}
        scraped = [
            {
                "job_name": job,
                "metrics_path": path,
                "authorization": authorization,
                "static_configs": [{"targets": [f"{HOST}:{api_port}"]}],
            }
            for job, path in ENDPOINTS.items()
        ]
        settings = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        self._config.write_text(json.dumps({"global": settings, "scrape_configs": scraped}), encoding="utf-8")

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://{HOST}:{self.port}"

    def argv(self) -> list[str]:
        return [
            "prometheus",
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={HOST}:{self.port}",
            "--log.level=warn",
        ]

    def answers(self) -> bool:
        return b"200 OK" in probe(self.port, b"GET /-/ready HTTP/1.0\r\n\r\n")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The elements of an instant vector."""
        line = http.client.HTTPConnection(HOST, self.port, timeout=_LIMIT)
        try:
            line.request("GET", f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
            found = json.load(line.getresponse())
        finally:
            line.close()
        assert found["status"] == "success", found
        result: list[dict[str, Any]] = found["data"]["result"]
        return result
