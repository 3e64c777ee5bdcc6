"""Settings of Django for translations, and a client of a scripted API; neither needs Horizon.

Horizon has an environment of its own.  Here its base classes are Django's, so that the requests of pages and their
texts are tested without it; pages as a whole are tested in a browser.
"""

import os
import sys
from types import ModuleType

import pytest
from django.views.generic import FormView, TemplateView

from sluice_client import Client
from sluice_client.testing import StubController

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")


def put_module(name, **attributes):
    """Make ``name`` importable with these ``attributes``."""
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(attributes)
    return module


VIEWS = put_module("horizon.views", HorizonTemplateView=TemplateView, HorizonFormView=FormView)
EXCEPTIONS = put_module("horizon.exceptions", NotAuthenticated=Exception, ServiceCatalogException=Exception)
BASES = {name: type(name, (), {}) for name in ("Dashboard", "Panel", "PanelGroup")}
put_module("horizon", views=VIEWS, exceptions=EXCEPTIONS, **BASES)
put_module("openstack_dashboard.api", base=put_module("openstack_dashboard.api.base"))
put_module("openstack_dashboard")


@pytest.fixture
def stub():
    with StubController() as running:
        yield running


@pytest.fixture
def client(stub):
    with Client(stub.url) as made:
        yield made
