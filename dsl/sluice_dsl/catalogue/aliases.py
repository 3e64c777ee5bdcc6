"""Aliases of actions: a sentence that uses one is checked as if it used the action that the alias stands for.

Spans stay where the sentence has its words, so that an error points at what was written; a parameter
that comes with the alias points at the alias.  The canonical text keeps the alias.
"""

from __future__ import annotations

from dataclasses import replace

from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.syntax.ast import Action, Parameter, Sentence, Word


def expand_aliases(sentence: Sentence, catalogue: Catalogue) -> Sentence:
    """``sentence`` with keywords of the vocabulary in place of aliases."""
    if not any(one.keyword.text in catalogue.actions_by_alias for one in sentence.actions):
        return sentence
    return replace(sentence, actions=tuple(_expanded(one, catalogue) for one in sentence.actions))


def _expanded(action: Action, catalogue: Catalogue) -> Action:
    alias = catalogue.actions_by_alias.get(action.keyword.text)
    if alias is None:
        return action
    span = action.keyword.span
    given = {one.name.text for one in action.parameters}
    # what the sentence says itself comes before what the alias brings; DELETE takes no parameters
    brought = tuple(
        Parameter(Word(name, span=span), Word(value, span=span), span=span)
        for name, value in alias.params.items()
        if action.verb != "delete" and name not in given
    )
    return replace(action, keyword=Word(alias.keyword, span=span), parameters=(*brought, *action.parameters))
