"""Validates uploaded code in Swift's own interpreter, as Swift's user."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
from typing import Final

from sluice_code.native_trial import Interpreter, Trial, Verdict, trial_module, try_code
from sluice_core.errors import PeerError
from sluice_core.options import OptionError

_TIMEOUT: Final = 30.0


def swift_interpreter(python: str, user: str, group: str) -> Interpreter:
    """The interpreter and user for native code; no change of user, which needs root, when the agent is that user.

    :raises OptionError: when there is no such user or group
    """
    if not user:
        return Interpreter(python)
    try:
        known = pwd.getpwnam(user)
        gid = grp.getgrnam(group).gr_gid if group else known.pw_gid
        name = grp.getgrgid(gid).gr_name
    except KeyError as error:
        raise OptionError(f"options `swift_user` and `swift_group`: {error.args[0]!s}") from error
    if (known.pw_uid, gid) == (os.geteuid(), os.getegid()):
        return Interpreter(python)
    return Interpreter(python, user, name)


def import_error(module: str, given: Interpreter) -> str:
    """Return why the interpreter cannot import ``module``; empty when it can.

    :raises PeerError: when it cannot be started
    """
    python = given.python or sys.executable
    try:
        child = subprocess.run(
            [python, "-I", "-c", f"import {module}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            timeout=_TIMEOUT,
            check=False,
            user=given.user or None,
            group=given.group or None,
            extra_groups=() if given.user else None,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise PeerError(f"cannot start `{python}`: {error}") from error
    if child.returncode == 0:
        return ""
    message = child.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return f"`{python}` cannot import `{module}`: {message or child.returncode}"


def validate_code(trial: Trial, given: Interpreter) -> Verdict:
    """Return the verdict on native code; an interpreter that cannot run any trial gives no verdict.

    :raises PeerError: when the code could not be validated
    """
    verdict = try_code(trial, given)
    if verdict.reason:
        fault = import_error(trial_module(trial), given)
        if fault:
            raise PeerError(f"code cannot be tried: {fault}")
    return verdict
