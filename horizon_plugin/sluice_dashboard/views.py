"""The base of Sluice's pages and forms: data and failures of the API, and sections that are refreshed.

A page is rendered as a whole once.  Its *sections* are fetched again by ``live.js``, as HTML of the same template, so
that escaping and translation stay here.  Fetching them does not extend the login session: Horizon's middleware sets
the session's expiry at each request, and :meth:`PageView.dispatch` leaves such a session unsaved.

If the API is unreachable, the page is shown with its frame and reports it (503); a section keeps its content, and the
page says how old it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.generic import View
from horizon import exceptions, views

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.charts import Plot, TimeRange
from sluice_dashboard.templatetags.sluice import url_in_panel

#: The parameter of a page's URL that requests one section of it.
SECTION: Final = "section"
#: The status of an answer without the API.
AWAY_STATUS: Final = 503
_SECTION_TEMPLATE: Final = "sluice_dashboard/_section.html"
_FAILURE_TEMPLATE: Final = "sluice_dashboard/_failure.html"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page that is fetched again every ``seconds``.

    ``fetch(client, request, **parameters of the URL)`` gives the context of ``template``.
    """

    template: str
    fetch: Callable[..., Mapping[str, Any]]
    seconds: int = 5


class UnsavedSession(View):
    """A view that browsers call automatically, which must not extend the login session."""

    def is_background_poll(self) -> bool:
        """Whether the browser, not the user, made the request."""
        return True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            return response
        finally:
            if self.is_background_poll():
                request.session.modified = False


class PageView(UnsavedSession, views.HorizonTemplateView):
    """A page; a subclass sets ``page_title``, ``template_name``, ``sections`` and overrides :meth:`fetch`.

    The template extends ``sluice_dashboard/page.html`` and shows ``{{ sections.<name> }}``.
    """

    template_name = "sluice_dashboard/page.html"
    sections: ClassVar[Mapping[str, Section]] = {}
    #: The target for ``{% permitted %}``; empty for operations without a target.
    target = ""

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return the context of the parts that are not refreshed.

        :raises ClientError: which the page then shows in place of its content
        """
        return {}

    def is_background_poll(self) -> bool:
        return SECTION in self.request.GET

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        name = request.GET.get(SECTION)
        if name is not None:
            return self._section_response(name)
        context = self.get_context_data(**kwargs)
        response: HttpResponse = self.render_to_response(context)
        response.status_code = context["status"]
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        context |= {"target": self.target, "failure": None, "status": 200}
        try:
            client = api.client(self.request)
            context |= self.fetch(client)
        except ClientError as error:
            failure = shown_failure(error)
            return {**context, "failure": failure, "status": failure.status}
        shown = {}
        for name, section in self.sections.items():
            if context["status"] != AWAY_STATUS:  # otherwise the others would wait for it in vain
                content, context["status"] = self._content(client, section, context["status"])
            given = {"name": name, "seconds": section.seconds, "content": content}
            shown[name] = render_to_string(_SECTION_TEMPLATE, given, request=self.request)
        return {**context, "sections": shown}

    def _content(self, client: Client, section: Section, status: int = 200) -> tuple[SafeString, int]:
        """Return the HTML of a section, and the status of the answer."""
        try:
            context = {"target": self.target, **section.fetch(client, self.request, **self.kwargs)}
        except ClientError as error:
            failure = shown_failure(error)
            return render_to_string(_FAILURE_TEMPLATE, {"failure": failure}, request=self.request), failure.status
        return render_to_string(section.template, context, request=self.request), status

    def _section_response(self, name: str) -> HttpResponse:
        if name not in self.sections:
            raise Http404
        try:
            client = api.client(self.request)
        except ClientError as error:
            return HttpResponse(shown_failure(error).message, status=AWAY_STATUS)
        content, status = self._content(client, self.sections[name])
        return HttpResponse(content, status=status)


class PlotView(UnsavedSession):
    """The JSON for ``plots.js``, or with ``?format=csv`` the same data as a file."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """Return the plot; the parameters of the URL are in ``self.kwargs``."""
        raise NotImplementedError

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Called by the browser for each step of the plot."""
        try:
            plot = self.plot(api.client(request), TimeRange.read(request.GET))
        except ClientError as error:
            failure = shown_failure(error)
            return JsonResponse({"message": failure.message}, status=failure.status)
        if request.GET.get("format") == "csv":
            headers = {"Content-Disposition": 'attachment; filename="plot.csv"'}
            return HttpResponse(plot.to_csv(), content_type="text/csv; charset=utf-8", headers=headers)
        return JsonResponse(plot.to_data())


class ScriptView(View):
    """A view that Sluice's scripts call by POST during typing, so it may extend the login session."""

    def answer(self, client: Client, asked: Mapping[str, str]) -> HttpResponseBase:
        """Return the answer to the form ``asked``.

        :raises ClientError: see :meth:`failed`
        """
        raise NotImplementedError

    def failed(self, failure: api.Failure) -> HttpResponseBase:
        """Return the answer if the API is unreachable, or refuses."""
        raise NotImplementedError

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Called by the script."""
        try:
            return self.answer(api.client(request), request.POST)
        except ClientError as error:
            return self.failed(shown_failure(error))


def next_query(marker: str | None, **kept: str) -> str:
    """The query of the following page, with the ``kept`` parameters of this one; empty if there is none."""
    return urlencode({**kept, "marker": marker}) if marker else ""


def next_query_like(query: QueryDict, marker: str | None) -> str:
    """The same with all parameters of this page's ``query``."""
    following = query.copy()
    following.pop(SECTION, None)
    following["marker"] = marker or ""
    return str(following.urlencode()) if marker else ""


def shown_failure(error: ClientError) -> api.Failure:
    """Return the failure that a page shows for ``error``.

    :raises NotAuthenticated: if the user has to log in again
    """
    failure = api.failure_of(error)
    if failure.kind == api.LOGIN:
        raise exceptions.NotAuthenticated(_("Please log in to continue.")) from error
    return failure


# Forms that change something, and confirmations of irreversible actions.
#
# Each is a page of its own with a token against cross-site requests; a refusal of the API is shown beside the fields,
# which keep their input.


class ActionView(views.HorizonFormView):
    """A form that performs an action; subclasses set ``form_class``, ``page_title``, ``next_page``, and :meth:`act`."""

    template_name = "sluice_dashboard/form.html"
    submit_label = _("Save")
    #: The page of the panel after the action, and the parameters of this URL that it needs.
    next_page: ClassVar[tuple[str, ...]] = ("index",)
    #: The same for leaving without the action; empty: the page after the action.
    cancel_page: ClassVar[tuple[str, ...]] = ()
    #: The message after the action; empty for none.
    done: Any = ""
    target = ""

    def act(self, client: Client, data: Mapping[str, Any]) -> str | None:
        """Perform the action; return the message for the user, None for ``done``.

        :raises ClientError: which the form then shows
        """
        raise NotImplementedError

    def field_of(self, failure: api.Failure, form: forms.Form) -> str | None:
        """Return the field that ``failure`` is about; None for no field.

        It is the first field whose name or typed text (or a line of it) is in backticks in the message.
        """
        words = failure.quoted
        named = next((word for word in words if word in form.fields), None)
        typed = ((name, line.strip()) for name in form.fields for line in str(form.data.get(name, "")).splitlines())
        return named or next((name for name, line in typed if line in words), None)

    def add_failure(self, form: forms.Form, failure: api.Failure) -> None:
        """Add the reason of the failure to ``form``."""
        form.add_error(self.field_of(failure, form), failure.message)

    def get_success_url(self) -> str:
        return self._url_of(*self.next_page)

    def _url_of(self, page: str, *parameters: str) -> str:
        return url_in_panel(self.request, page, *(self.kwargs[name] for name in parameters))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show an error that prevents the form in its place."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except ClientError as error:
            failure = shown_failure(error)
            # the page's own title may be a template that needs the form's context
            context = {"failure": failure, "page_title": failure.title}
            return render(request, "sluice_dashboard/page.html", context, status=failure.status)

    def form_valid(self, form: forms.Form) -> HttpResponseBase:
        """Called with valid input."""
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
    """The question before a deletion; a subclass sets ``page_title`` and overrides :meth:`question` and :meth:`act`."""

    template_name = "sluice_dashboard/confirm.html"
    form_class = forms.Form
    submit_label = _("Delete")

    def question(self) -> str:
        """Return the question, which names the loss."""
        raise NotImplementedError

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "question": self.question()}
