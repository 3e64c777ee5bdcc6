"""The proxy application of a daemon, from one file or several."""

import pytest

from sluice_core.options import OptionError
from sluice_middleware.wsgi.internal_client import load_app, read_section
from sluice_rewriter.settings import OPTIONS, SECTION

#: An "application" that is its own configuration.
APP = "[app:main]\npaste.app_factory = collections:UserDict\n"


def test_of_several_files_the_later_one_wins_in_all_sections(tmp_path):
    package, own = tmp_path / "package.conf", tmp_path / "own.conf"
    package.write_text(f"[DEFAULT]\nswift_dir = /etc/swift\nTurn = 1\n[rewriter]\nconcurrency = 2\n{APP}colour = red\n")
    own.write_text("[DEFAULT]\nTurn = 2\n[rewriter]\nlog_format = json\n[app:main]\ncolour = green\n")
    app = load_app(package, own)
    assert (app["swift_dir"], app["Turn"], app["colour"], app["account_autocreate"]) == (
        "/etc/swift",
        "2",
        "green",
        "true",
    )
    values = read_section(SECTION, OPTIONS, package, own)
    assert (values["concurrency"], values["log_format"]) == (2, "json")
    assert load_app(package)["colour"] == "red"


def test_files_without_an_application_are_named(tmp_path):
    paths = tmp_path / "a.conf", tmp_path / "b.conf"
    for path in paths:
        path.write_text("[rewriter]\n")
    with pytest.raises(OptionError, match=r"a.conf, .*b.conf` describes no proxy application"):
        load_app(*paths)
