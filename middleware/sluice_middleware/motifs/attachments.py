"""``X-Object-Motif`` on a client's PUT or POST: the motifs that are attached to the object.

Either a JSON list, ``[{"template": "concat", "params": {"of": "AUTH_a/c/1,AUTH_a/c/2"}}]``, or one motif in short:
``concat; of=AUTH_a/c/1,AUTH_a/c/2``, whose values are read as the template describes its parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from sluice_core.describe import Scalar
from sluice_filters.api import BadParameter, parse_parameter
from sluice_motifs.api import Template
from sluice_motifs.storage.records import MOST_MOTIFS

HEADER: Final = "X-Object-Motif"
HEADER_ENV: Final = "HTTP_X_OBJECT_MOTIF"
_EXPECTED: Final = 'expected `template; name=value; …` or a JSON list of `{"template": …, "params": {…}}`'


def parse_attachments(value: str, templates: Mapping[str, type[Template]]) -> tuple[dict[str, Any], ...]:
    """Template and parameters of each motif in a header.

    :raises BadParameter: when the header has neither form
    """
    text = unquote(value, errors="surrogateescape").strip()
    motifs = _from_json(text) if text.startswith("[") else (_from_short(text, templates),)
    if len(motifs) > MOST_MOTIFS:
        raise BadParameter(f"`{HEADER}` names {len(motifs)} motifs, expected at most {MOST_MOTIFS}")
    return motifs


def _from_json(text: str) -> tuple[dict[str, Any], ...]:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadParameter(f"`{HEADER}` is no JSON ({error}), {_EXPECTED}") from error
    return tuple(map(_motif, listed))


def _motif(motif: Any) -> dict[str, Any]:
    match motif:
        case {"template": str(template), **rest} if rest.keys() <= {"params"}:
            params = rest.get("params", {})
            if isinstance(params, dict) and all(isinstance(value, Scalar) for value in params.values()):
                return {"template": template, "params": params}
    raise BadParameter(f"`{HEADER}` has `{json.dumps(motif):.80}`, {_EXPECTED}")


def _from_short(text: str, templates: Mapping[str, type[Template]]) -> dict[str, Any]:
    template, *pairs = (part.strip() for part in text.split(";"))
    if not template:
        raise BadParameter(f"`{HEADER}` names no template, {_EXPECTED}")
    params: dict[str, Scalar] = {}
    for pair in filter(None, pairs):
        name, equals, written = (part.strip() for part in pair.partition("="))
        if not equals:
            raise BadParameter(f"`{HEADER}` has `{pair:.80}`, {_EXPECTED}")
        parameter = templates[template].info.parameter(name) if template in templates else None
        params[name] = written if parameter is None else parse_parameter(parameter, written)
    return {"template": template, "params": params}
