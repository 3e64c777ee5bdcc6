"""The command line of the rewriter: errors of its configuration are one line."""

import subprocess
import sys

import pytest

from sluice_rewriter.cli import main

SWIFT = (
    "[DEFAULT]\nswift_dir = {folder}\n[pipeline:main]\npipeline = {names}\n[app:proxy-server]\nuse = egg:swift#proxy\n"
)


def run(*arguments):
    """Exit status, output and errors of a process of its own: the command makes all sockets green."""
    command = [sys.executable, "-c", "import sys; from sluice_rewriter.cli import main; sys.exit(main())", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[rewriter]\nconcurency = 3\n", "unknown option `concurency`, did you mean `concurrency`"),
        ("[rewriter]\nconcurrency = 0\n", "option `concurrency` is `0`, expected at least 1"),
        ("[rewriter]\nlog_level = loud\n", "option `log_level` is `loud`"),
        ("[rewriter]\n", "describes no proxy application"),
        ("not an ini file", "cannot read"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named(tmp_path, text, words):
    path = tmp_path / "rewriter.conf"
    path.write_text(text)
    status, _, errors = run("--config", str(path))
    assert status == 1
    assert errors.startswith("sluice-rewriter: ")
    assert words in errors
    assert "Traceback" not in errors


def test_without_a_configuration_it_says_what_it_needs(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "--config FILE is needed" in capsys.readouterr().err


def test_the_sample_is_printed(capsys):
    assert main(["--sample-config"]) == 0
    assert capsys.readouterr().out.startswith("[rewriter]\n# where Redis is\n")
