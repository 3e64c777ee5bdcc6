"""System checks of identity and rules: Keystone's options, the policy file, self-service."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

from django.core.checks import CheckMessage, Error
from keystoneauth1.exceptions import ClientException
from oslo_config import cfg

from sluice_controller.app.policy_sample import declared_rules
from sluice_controller.config import Config
from sluice_controller.identity import rules
from sluice_controller.identity.rules import PREFIX

#: What a rule can say as ``role:…``.
_ROLE: Final = re.compile(r"[\w.@-]+")


def keystone_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of ``[keystone_authtoken]``; no value of it is quoted, since some are secret."""
    from sluice_controller.identity import keystone as adapter

    path = config.keystone_source
    if not path:
        yield Error("option `auth` is `keystone`, but there is no file with [keystone_authtoken]", id="sluice.E010")
        return
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        conf = adapter.read_conf(path)
        section = conf[adapter.SECTION]
        given = {name: section[name] for name in section}
        lacking = [name for name in ("auth_type", "auth_url", *_user_of(given)) if not given.get(name)]
        if lacking:
            text = f"{path}: [{adapter.SECTION}] has no `{lacking[0]}`, expected how our user logs in to Keystone"
            yield Error(text, id="sluice.E011")
            return
        adapter.service_plugin(conf)
    except OSError as error:
        yield Error(f"`{path}` cannot be read: {error.strerror}", id="sluice.E010")
        return
    except cfg.ConfigFileParseError:  # whose text quotes the line, and so perhaps the password
        yield Error(f"`{path}` is no ini file", id="sluice.E010")
        return
    except (cfg.Error, ClientException) as error:
        yield Error(f"{path}: [{adapter.SECTION}] cannot be used: {_first_line(error)}", id="sluice.E011")
        return
    if mode & 0o007:
        text = f"`{path}` has mode {mode:04o} and holds the password of [{adapter.SECTION}]: everybody may read it"
        yield Error(text, hint="chmod o-rwx FILE", id="sluice.E012")
    if section.memcached_servers and find_spec("memcache") is None:
        text = f"{path}: `memcached_servers` of [{adapter.SECTION}] needs the package `python-memcached`"
        yield Error(text, id="sluice.E013")
    if not config.reseller_prefix:
        text = "option `reseller_prefix` is empty, expected what Swift's keystoneauth has, as `AUTH_`"
        yield Error(text, id="sluice.E014")


def rule_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of ``policy_file``, ``operator_roles`` and ``self_service``."""
    if config.policy_file:
        yield from policy_file_faults(config.policy_file)
    for role in filter(None, (one.strip() for one in config.operator_roles.split(","))):
        if not _ROLE.fullmatch(role):
            text = f"option `operator_roles` names `{role}`, expected names of roles, separated by commas"
            yield Error(text, hint="a role of another name can be said in the rule `operator`", id="sluice.E024")
    if config.self_service_words:
        from sluice_controller.catalog.vocabulary import build_catalogue  # loads every filter

        known = build_catalogue().actions
        for word in sorted(config.self_service_words - known.keys()):
            text = f"option `self_service` names `{word}`, which is no keyword here{_near(word, known)}"
            yield Error(text, hint="a filter that is registered has a field of this name", id="sluice.E017")


def policy_file_faults(path: str) -> Iterator[CheckMessage]:
    """Errors of a file of rules: unreadable, a name that no rule has, a rule that cannot be resolved."""
    declared_rules()
    try:
        found = rules.enforcer(path)
        whole = found.check_rules()
    except OSError as error:
        yield Error(f"option `policy_file`: `{path}` cannot be read: {error.strerror}", id="sluice.E015")
        return
    except (ValueError, cfg.Error) as error:
        yield Error(f"option `policy_file`: `{path}` cannot be used: {_first_line(error)}", id="sluice.E015")
        return
    known = found.registered_rules
    for name in sorted(found.file_rules.keys() - known.keys()):
        if name.startswith(PREFIX):
            text = f"option `policy_file`: `{path}` has a rule `{name}`, which nothing asks for{_near(name, known)}"
            yield Error(text, id="sluice.E016")
    if not whole:
        text = f"option `policy_file`: a rule in `{path}` refers to one that is not there, or to itself"
        yield Error(text, id="sluice.E016")


def _user_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that a login by password needs; other plugins check their own."""
    if given.get("auth_type") not in ("password", "v3password"):
        return ()
    return ("user_id" if given.get("user_id") else "username", "password")


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f", did you mean `{near[0]}`" if near else ""


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text[:1].lower() + text[1:]
