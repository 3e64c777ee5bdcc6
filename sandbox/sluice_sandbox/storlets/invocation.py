"""``X-Run-Storlet``: a client requests a storlet by its name, if a policy allows it.

    FOR TENANT acme DO SET storlets WITH allow='thumbnail,csv_head'

then ``X-Run-Storlet: csv_head`` on GET or PUT runs that registered filter, ``X-Run-Storlet: a,b`` first ``a``, then
``b`` in one entry.  ``X-Storlet-Parameter-1: lines:10`` (up to 20 of them) sets a parameter that the filter declares.
Without the header no storlet runs.  Registered filters can be allowed, by keyword or by the file name of their main
class; objects in containers called ``storlet`` have no special meaning.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from sluice_core.describe import FILTER, PROXY, STORLET, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter, Hint, Stream, Transparent
from sluice_sandbox.isolated import IsolatedFilter

RUN: Final = "X-Run-Storlet"
PARAMETERS: Final = tuple(f"X-Storlet-Parameter-{number}" for number in range(1, 21))
_YES: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: The conversion of a parameter's text by type; all other types are numbers with a fraction.
_READERS: Final[dict[str, Callable[[str], Scalar]]] = {
    "str": str,
    "list": str,
    "bool": lambda text: _YES[text.lower()],
    "int": int,
    "size": int,
}


class StorletInvocation(Filter):
    """Runs the storlets that the request names; ``known`` are the filters of this node by keyword."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="storlets",
        kind=FILTER,
        help="let clients run registered storlets by the header X-Run-Storlet",
        parameters=(Parameter("allow", "list", "keywords of the storlets that clients may run", required=True),),
        places=(PROXY,),
        default_place=PROXY,
        stage=250,
        on_put=True,
        on_get=True,
        changes_content=True,
        changes_length=True,
    )
    asks = (RUN, *PARAMETERS)
    known: ClassVar[Mapping[str, type[Filter]]] = {}

    def applies(self, hint: Hint) -> bool:
        return bool(hint.asked.get(RUN))

    def reads(self, hint: Hint) -> bool:
        return bool(hint.asked.get(RUN))

    def encoder(self, hint: Hint) -> Stream:
        chosen = self._chosen(hint)
        return chosen[0].team.encoder(chosen, hint) if chosen else Transparent()

    def reader(self, hint: Hint) -> Stream:
        chosen = self._chosen(hint)
        # a team receives its steps in the order of PUT, and runs them backwards
        return chosen[0].team.reader(chosen[::-1], hint) if chosen else Transparent()

    def _chosen(self, hint: Hint) -> list[IsolatedFilter]:
        """Return the filters that the request names, in running order.

        :raises BadParameter: when a filter is not allowed or missing, or its parameters are wrong
        """
        names = [name.strip() for name in hint.asked.get(RUN, "").split(",") if name.strip()]
        classes = [self._allowed(name) for name in names]
        given = dict(_pair(hint.asked[header]) for header in PARAMETERS if hint.asked.get(header))
        strangers = [name for name in given if all(one.info.parameter(name) is None for one in classes)]
        if classes and strangers:
            raise BadParameter(f"`{', '.join(names)}` has no parameter `{strangers[0]}`")
        return [one(_converted(one.info, given)) for one in classes]

    def _allowed(self, name: str) -> type[IsolatedFilter]:
        allowed = [one.strip() for one in str(self.params["allow"]).split(",")]
        for keyword in allowed:
            allowed_class = self.known.get(keyword)
            if (
                allowed_class is None
                or not issubclass(allowed_class, IsolatedFilter)
                or allowed_class.info.environment != STORLET
            ):
                continue
            if name in (keyword, f"{allowed_class.upload.main.partition('.')[0]}.py"):
                return allowed_class
        near = difflib.get_close_matches(name, allowed, 1)
        hint = f", did you mean `{near[0]}`" if near and near[0] != name else ""
        raise BadParameter(f"storlet `{name}` may not be run here{hint}")


def invocation_filter(known: Mapping[str, type[Filter]]) -> type[StorletInvocation]:
    """The filter ``storlets`` over the filters of this node, to be added to them."""
    return type("StorletInvocation", (StorletInvocation,), {"known": known})


def _pair(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise BadParameter(f"storlet parameter `{text}`, expected `name:value`")
    return name.strip().lower(), value.strip()


def _converted(info: ActionInfo, given: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the parameters of ``given`` that ``info`` declares, in their types."""
    declared: dict[str, Any] = {one.name: one.type for one in info.parameters}
    return {name: _scalar(name, value, declared[name]) for name, value in given.items() if name in declared}


def _scalar(name: str, text: str, wanted: str) -> Scalar:
    try:
        return _READERS.get(wanted, float)(text)
    except (KeyError, ValueError):
        expected = "true or false" if wanted == "bool" else f"a number ({wanted})"
        raise BadParameter(f"`{name}` is `{text}`, expected {expected}") from None
