"""Sluice's distribution under both of its names is refused; the ZFS tool of the former name is accepted."""

import pytest

from sluice_core.process.distributions import TwoDistributions, refuse_two_distributions

PROGRAMS = "[console_scripts]\nsluice-agent = sluice_agent.cli:main\n\n[paste.filter_factory]\nproxy = sluice_x:y\n"
ZFS_PROGRAMS = "[console_scripts]\nsluice = sluice.main:main\n"


@pytest.fixture
def install(tmp_path):
    """Write the ``dist-info`` of a distribution, as pip does; return the folder."""

    def write(name, version, packages="sluice_agent\nsluice_core\n", programs=PROGRAMS, kind="dist-info"):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.{kind}"
        folder.mkdir()
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        (folder / ("METADATA" if kind == "dist-info" else "PKG-INFO")).write_text(text)
        (folder / "entry_points.txt").write_text(programs)
        if packages:
            (folder / "top_level.txt").write_text(packages)

    return write


def refuse(tmp_path):
    refuse_two_distributions([str(tmp_path)])


def test_both_names_are_refused_with_what_to_run(install, tmp_path):
    install("sluice", "0.1.0")
    install("openstack-sluice", "0.2.0")
    with pytest.raises(TwoDistributions) as caught:
        refuse(tmp_path)
    said = str(caught.value)
    assert "`sluice` 0.1.0 and `openstack-sluice` 0.2.0 are both installed" in said
    assert "`pip uninstall sluice`" in said
    assert "`pip install --force-reinstall --no-deps openstack-sluice==0.2.0`" in said


def test_the_former_one_is_known_by_its_programs_where_its_packages_are_not_listed(install, tmp_path):
    install("sluice", "0.1.0", packages="")
    install("openstack-sluice", "0.2.0", packages="")
    with pytest.raises(TwoDistributions):
        refuse(tmp_path)


@pytest.mark.parametrize("name", ["sluice", "openstack-sluice"])
def test_one_of_them_alone_is_well(install, tmp_path, name):
    install(name, "0.2.0")
    refuse(tmp_path)


def test_the_zfs_tool_of_the_former_name_may_stand_beside_ours(install, tmp_path):
    install("sluice", "0.9.3", "sluice\n", ZFS_PROGRAMS)
    install("openstack-sluice", "0.2.0")
    refuse(tmp_path)


def test_metadata_in_a_folder_of_source_code_is_no_installation(install, tmp_path):
    install("sluice", "0.1.0", kind="egg-info")
    install("openstack-sluice", "0.2.0")
    refuse(tmp_path)


def test_this_environment_has_one():
    refuse_two_distributions()
