"""Pages of the installation guide can be followed: blocks name hosts, placeholders are explained, pages are short."""

import re

import pytest
from tests.support.hosts.lab import ADDRESSES
from tests.support.install.guide import GUIDE, Step, read_page

PAGES = sorted(GUIDE.glob("*.md"))
ROLES = {"controller", "proxy", "storage", "volumes", "files", "horizon", "replica", "sentinel", *ADDRESSES}
#: As many as the table of placeholders has, in capitals as in OpenStack's own guides.
PLACEHOLDER = re.compile(r"\b(?:[A-Z]+_PASS|NEW_VERSION)\b")


def write(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_blocks_are_steps_with_the_output_behind_them(tmp_path):
    page = write(
        tmp_path,
        """\
1. Do:

   ```sh host=proxy repeat
   cat <<END
     indented
   END
   ```

   ```text output
   indented
   ```

```ini host=storage edit=/etc/x.conf
[a]
```

<!-- no-run: needs a moon -->
```sh
launch
```
""",
    )
    assert read_page(page) == [
        Step("page.md:3", "proxy", "cat <<END\n  indented\nEND\n", "", "indented\n", True),
        Step("page.md:13", "storage", "[a]\n", "/etc/x.conf"),
    ]


def test_a_block_that_nobody_follows_says_why(tmp_path):
    with pytest.raises(ValueError, match=r"page\.md:1: a block of `sh` has no host"):
        read_page(write(tmp_path, "```sh\nrm x\n```\n"))


OUTPUT = "```text output\nx\n```\n"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "```ini host=proxy edit=/etc/x.conf\n[a]\n```\n",
        "```sh host=proxy\necho x\n```\n" + OUTPUT,
        "```sh host=proxy\necho y\n```\n<!-- no-run: needs a moon -->\n```sh\necho x\n```\n",
    ],
    ids=["nothing", "an edited file", "another output", "commands that are not followed"],
)
def test_an_output_that_is_compared_with_nothing_is_refused(tmp_path, before):
    with pytest.raises(ValueError, match="an output without commands"):
        read_page(write(tmp_path, before + OUTPUT))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_can_be_followed_and_is_short(page):
    assert {step.host for step in read_page(page)} <= ROLES
    assert len(page.read_text().split()) <= 3000


def test_every_placeholder_is_explained():
    explained = set(PLACEHOLDER.findall((GUIDE / "index.md").read_text()))
    used = {word for page in PAGES for step in read_page(page) for word in PLACEHOLDER.findall(step.text)}
    assert used <= explained
