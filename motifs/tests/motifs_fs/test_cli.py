"""The command line of mounts."""

import pytest

from sluice_motifs_fs.cli import main, parser


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("4096", 4096), ("10GB", 10**10), ("3k", 3000), ("1TB", 10**12)])
def test_sizes_are_written_with_units(text, size):
    assert parser().parse_args(["mount", "a", "b", "--target-size", text]).target_size == size


@pytest.mark.parametrize("text", ["", "B", "1.5GB", "-1", "10XB"])
def test_what_is_no_size_is_refused(text, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["mount", "a", "b", f"--target-size={text}"])
    assert "expected" in capsys.readouterr().err


def test_a_file_outside_of_a_mount_is_refused(tmp_path, capsys):
    assert main(["attach", str(tmp_path / "missing"), "concat", "of=a"]) == 1
    assert main(["attach", str(tmp_path / "missing"), "concat", "of"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"sluice-motif-fs: `{tmp_path / 'missing'}`: No such file or directory",
        "sluice-motif-fs: `of` is no parameter, expected NAME=VALUE",
    ]


def test_a_missing_folder_is_refused(tmp_path, capsys):
    assert main(["mount", str(tmp_path / "missing"), str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"sluice-motif-fs: `{tmp_path / 'missing'}` is no folder\n"
