"""What all views share."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView

from sluice_controller.backend import Backend, current
from sluice_controller.parameters import Query


class View(APIView):
    """A resource; ``self.backend`` is what services work with."""

    backend: Backend
    #: OPTIONS is left out: ``/schema`` says more
    http_method_names: tuple[str, ...] = ("get", "post", "delete", "head")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Called by REST framework before the method: who asks is known after this."""
        super().initial(request, *args, **kwargs)
        self.backend = current()

    @staticmethod
    def query(request: Request, *known: str) -> Query:
        """The query string, in which only ``known`` names may stand."""
        return Query(request.query_params, *known)
