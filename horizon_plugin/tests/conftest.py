"""What Django needs before words can be translated, and a client of a scripted API; none of it needs Horizon."""

import os

import pytest

from sluice_client import Client
from sluice_client.testing import StubController

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")


@pytest.fixture
def stub():
    with StubController() as running:
        yield running


@pytest.fixture
def client(stub):
    with Client(stub.url) as made:
        yield made
