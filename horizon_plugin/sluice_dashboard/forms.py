"""Forms that change something, and the question before what cannot be undone.

Each is a page of its own with a token against cross-site requests; what the API refuses is shown beside the fields,
with all that was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from horizon import views

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import shown_failure


class ActionView(views.HorizonFormView):
    """A form that does something; a subclass says ``form_class``, ``page_title``, ``next_page``, and :meth:`act`."""

    template_name = "sluice_dashboard/form.html"
    submit_label = _("Save")
    #: The page of the panel where one goes afterwards, and those parameters of this URL that it needs.
    next_page: ClassVar[tuple[str, ...]] = ("index",)
    #: The same of where one goes without doing it; empty: where one goes afterwards.
    cancel_page: ClassVar[tuple[str, ...]] = ()
    #: What is said afterwards; empty for nothing.
    done: Any = ""
    target = ""

    def act(self, client: Client, data: Mapping[str, Any]) -> str | None:
        """Do it; what is said about it afterwards, None for what ``done`` says.

        :raises ClientError: which the form then shows
        """
        raise NotImplementedError

    def field_of(self, failure: api.Failure, form: forms.Form) -> str | None:
        """The field that ``failure`` is about; None for no field.

        It is the first one whose name, or what was typed in it (a line of that), the message has in backticks.
        """
        words = failure.quoted
        named = next((word for word in words if word in form.fields), None)
        typed = ((name, line.strip()) for name in form.fields for line in str(form.data.get(name, "")).splitlines())
        return named or next((name for name, line in typed if line in words), None)

    def add_failure(self, form: forms.Form, failure: api.Failure) -> None:
        """Say in ``form`` why it was not done."""
        form.add_error(self.field_of(failure, form), failure.message)

    def get_success_url(self) -> str:
        return self._url_of(*self.next_page)

    def _url_of(self, page: str, *parameters: str) -> str:
        return url_in_panel(self.request, page, *(self.kwargs[name] for name in parameters))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show what keeps the form from being shown in its place."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except ClientError as error:
            failure = shown_failure(error)
            # the page's own title may be a template that needs the form's context
            context = {"failure": failure, "page_title": failure.title}
            return render(request, "sluice_dashboard/page.html", context, status=failure.status)

    def form_valid(self, form: forms.Form) -> HttpResponseBase:
        """Called with what was typed, when it is what the fields expect."""
        try:
            done = self.act(api.client(self.request), form.cleaned_data) or self.done
        except ClientError as error:
            failure = shown_failure(error)
            self.add_failure(form, failure)
            response: HttpResponseBase = self.render_to_response(self.get_context_data(form=form, refusal=failure))
            response.status_code = failure.status
            return response
        if done:
            messages.success(self.request, str(done))
        return HttpResponseRedirect(self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**{**self.kwargs, **kwargs})
        back = self._url_of(*self.cancel_page) if self.cancel_page else self.get_success_url()
        return {**context, "submit_label": self.submit_label, "cancel_url": back, "target": self.target}


class ConfirmView(ActionView):
    """The question before a deletion; a subclass says ``page_title`` and overrides :meth:`question` and :meth:`act`."""

    template_name = "sluice_dashboard/confirm.html"
    form_class = forms.Form
    submit_label = _("Delete")

    def question(self) -> str:
        """What is asked: names what is lost."""
        raise NotImplementedError

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "question": self.question()}
