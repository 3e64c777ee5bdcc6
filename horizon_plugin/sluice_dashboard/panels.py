"""The base of our panels: each says which operations of the API it is for."""

from __future__ import annotations

from typing import Any, ClassVar

import horizon

from sluice_dashboard import api


class ProjectPanel(horizon.Panel):
    """A panel that is shown to whoever may do one of its ``operations``, as ``policies:list``; empty: to all."""

    operations: ClassVar[tuple[str, ...]] = ()

    def allowed(self, context: Any) -> bool:
        """Asked for the menu, and before each view of the panel."""
        request = context["request"]
        if not super().allowed(context) or not api.is_there(request):
            return False
        known = api.permissions(request)
        if known.known and self.operations:
            return known.allow_any(self.operations)
        return self.allowed_unless_known(context)

    def allowed_unless_known(self, context: Any) -> bool:
        """The same while the API does not say what is allowed."""
        return True


class AdminPanel(ProjectPanel):
    """A panel about everybody's storage."""

    def allowed_unless_known(self, context: Any) -> bool:
        return bool(context["request"].user.is_superuser)
