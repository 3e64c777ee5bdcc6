"""One dependency: its data, and the filters that use it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.code.uploads import WORD, UploadForm, UploadView, opened
from sluice_dashboard.views import ActionView, ConfirmView, PageView, Section

_PATH: Final = "/filters/dependencies"


def fetch_dependency(client: Client, request: HttpRequest, dependency: str) -> Mapping[str, Any]:
    """Return the file, and the filters that use it."""
    return {"found": client.collection(_PATH).get(dependency)}


class DetailView(PageView):
    """One dependency."""

    page_title = _("Dependency {{ dependency }}")
    template_name = "sluice_dashboard/code/detail.html"
    sections = {"state": Section("sluice_dashboard/code/_dependency.html", fetch_dependency, seconds=5)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """A missing dependency is a page with status 404."""
        client.collection(_PATH).get(self.kwargs["dependency"])
        return {}


class NewDependencyForm(UploadForm):
    """A file beside the code of filters."""

    name = forms.CharField(
        label=_("Name"), validators=[WORD], help_text=_("of the file, as the filter's code looks for it")
    )
    help = forms.CharField(label=_("What it is for"), required=False)
    field_order = ("name", "code", "help")


class AttachForm(forms.Form):
    """The filters that use a file."""

    filters = forms.MultipleChoiceField(
        label=_("Filters"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("registered filters that run as storlets; all others are one file"),
    )

    def __init__(self, *args: Any, keywords: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["filters"].choices = [(one, one) for one in keywords]


class NewView(UploadView):
    """Create a dependency with its data; if the data are refused, delete it again."""

    page_title = _("Upload a dependency")
    form_class = NewDependencyForm
    name_field = "name"
    next_page = ("dependencies",)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.collection(_PATH).create({"name": data["name"], "help": data["help"]})
        try:
            client.dependency_data.upload(data["name"], opened(data["code"]))
        except ClientError:
            with contextlib.suppress(ClientError):  # the first fault is shown
                client.collection(_PATH).delete(data["name"])
            raise
        return str(_("%s is stored.") % data["name"])


class _DependencyAction:
    """A form that returns to the page of the dependency in the URL."""

    next_page: ClassVar[tuple[str, ...]] = ("dependency", "dependency")
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the dependency."""
        return str(self.kwargs["dependency"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return {**context, "name": self.name}


class DataView(_DependencyAction, UploadView):
    """Replace the data."""

    page_title = _("Upload data of {{ name }}")
    form_class = UploadForm

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.dependency_data.upload(self.name, opened(data["code"]))
        return str(_("The data of %s are stored. Filters that use it get them now.") % self.name)


class AttachView(_DependencyAction, ActionView):
    """Set the filters that use it."""

    page_title = _("Filters that use {{ name }}")
    form_class = AttachForm
    submit_label = _("Attach")

    def get_form_kwargs(self) -> dict[str, Any]:
        found = api.client(self.request).filters()
        known = [one["keyword"] for one in found if not one["installed"] and one["environment"] == "storlet"]
        return {**super().get_form_kwargs(), "keywords": known}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        # the form names the filters, so the target, which would select them, has no effect
        client.deploy_dependency(self.request.user.project_name, self.name, data["filters"])
        given = {"name": self.name, "filters": ", ".join(data["filters"])}
        return str(_("%(name)s is attached to %(filters)s.") % given)


class DetachView(_DependencyAction, ConfirmView):
    """Remove it from one filter."""

    page_title = _("Detach {{ name }}")
    submit_label = _("Detach")

    def question(self) -> str:
        return str(_("Shall filter %(filter)s be without %(dependency)s?") % self.kwargs)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.undeploy_dependency(self.request.user.project_name, self.name, [self.kwargs["filter"]])
        return str(_("Filter %(filter)s is without %(dependency)s.") % self.kwargs)


class DeleteView(_DependencyAction, ConfirmView):
    """Delete it."""

    page_title = _("Delete {{ name }}")
    next_page = ("dependencies",)

    def question(self) -> str:
        return str(_("Shall dependency %s be forgotten?") % self.name)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        client.collection(_PATH).delete(self.name)
        return str(_("%s is deleted.") % self.name)
