"""Takes the pictures of the dashboard that the pages show: one run of a cluster with Keystone, Cinder and Horizon, and
a browser.  As root, since the cluster has a volume; some fifteen minutes.

    make pictures [ONLY="policy monitoring"]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

if TYPE_CHECKING:
    from tests.support.browser.dashboard import Dashboard

FOLDER: Final = Path(__file__).parent
#: Pixels; pages are displayed with 1280.
WIDTH: Final = 1000
_COLOURS: Final = 256
#: Pixels below the last shown element.
_MARGIN: Final = 12
#: Milliseconds that a page may take on a loaded machine.
_PATIENCE: Final = 120_000
#: Milliseconds between keys.
_KEY: Final = 20
ADMINISTRATOR: Final = "ada"
_EDITOR: Final = "/sluice/policies/create/"
_PLOTTED: Final = ".sluice-plot canvas"
#: Whether each plot of a page is drawn, or reports that it has no data.
_DRAWN: Final = """() => [...document.querySelectorAll(".sluice-plot")].every(
    one => one.querySelector("canvas") || !one.querySelector("[data-plot-message]").hidden)"""
#: Ten minutes, a point for each ten seconds.
_RANGE: Final = "last=600&step=10"


@dataclass(frozen=True, slots=True)
class Picture:
    """A page, and the shown part of it.

    ``page`` opens it and waits until it is complete; ``last`` is the selector of the element below which the
    picture ends, the last one of those that match.
    """

    page: Callable[[Dashboard], None]
    last: str
    user: str = ADMINISTRATOR


def _page(path: str, ready: str) -> Callable[[Dashboard], None]:
    """A page at ``path``, which is complete when ``ready``, a selector, matches."""

    def open_page(tab: Dashboard) -> None:
        tab.open(path)
        tab.page.locator(ready).first.wait_for()

    return open_page


def _typed(text: str, ready: str) -> Callable[[Dashboard], None]:
    """The editor with ``text`` typed."""

    def type_text(tab: Dashboard) -> None:
        tab.open(_EDITOR)
        tab.page.get_by_label("Policy", exact=True).press_sequentially(text, delay=_KEY)
        tab.page.locator(ready).first.wait_for()

    return type_text


def _bandwidth_of_genomics(tab: Dashboard) -> None:
    tab.open("/sluice/bandwidth/")
    tab.page.locator(".sluice-flows").get_by_role("link", name="genomics").first.click()
    tab.page.wait_for_load_state()
    tab.page.goto(f"{tab.page.url}?{_RANGE}")
    tab.page.locator(_PLOTTED).first.wait_for()


def _policy_of_logs(tab: Dashboard) -> None:
    from docs.pictures.scene import RULE

    with tab.client(ADMINISTRATOR) as client:
        (found,) = (one["id"] for one in client.policies() if one["source"] == RULE)
    tab.open(f"/sluice/policies/{found}/?{_RANGE}")
    tab.page.locator("[data-plot-marks]", has_text="set").wait_for()
    tab.page.locator("#section-state", has_text="active").wait_for()


def _undo_of_encryption(tab: Dashboard) -> None:
    with tab.client(ADMINISTRATOR) as client:
        made = client.create_policy("FOR CONTAINER acme/ledger DO SET encryption", wait=20)["id"]
        (epoch,) = (one["epoch"] for one in client.changes() if made in one["policies"])
        tab.open(f"/sluice/changes/{epoch - 1}/rollback/")
        tab.page.locator(".sluice table").first.wait_for()


def _volume_of_invoices(tab: Dashboard) -> None:
    tab.open("/sluice_project/volumes/")
    tab.page.locator("#section-volumes").get_by_role("link", name="invoices").click()
    tab.page.locator("#section-snapshots", has_text="monday").wait_for()


_LOADS: Final = f"/sluice/monitoring/?node_metric=NODE_NET_OUT&metric=GET_BW&target=acme,%20genomics,%20media&{_RANGE}"
_PLACE: Final = "/sluice/changes/locality/?account=acme&container=logs&object=access-0001.log"
#: Each is shown on a page.
PICTURES: Final = {
    "overview": Picture(_page("/sluice/", "#section-events tbody tr"), "#section-events tr:nth-child(-n+8)"),
    "policy-typo": Picture(
        _typed("FOR TENANT acme WHEN PUT_SEC > 3 DO SET compression", "#policy-problems button"), ".sluice-editor .btn"
    ),
    "policy-words": Picture(_typed("FOR TENANT acme WHEN PUTS_SEC > 3 DO SET c", "[role=option]"), "#policy-words"),
    "policy-meaning": Picture(
        _typed("FOR CONTAINER acme/logs DO SET compression WITH level=9", ".sluice-meaning"),
        "[data-editor-part=meaning]",
    ),
    "policy": Picture(_policy_of_logs, "#section-nodes"),
    "filter": Picture(_page("/sluice/code/filters/rot13/", "#revision-2"), "#section-state"),
    "volume": Picture(_volume_of_invoices, "#section-snapshots", "alice"),
    "roll-back": Picture(_undo_of_encryption, ".sluice form"),
    "locality": Picture(_page(_PLACE, "#section-found tbody tr"), "#section-found"),
    "monitoring": Picture(_page(_LOADS, _PLOTTED), "#section-nodes"),
    "stereotype": Picture(
        _page("/sluice/registry/stereotypes/named/archive/", ".sluice-targets tbody tr"), ".sluice-targets"
    ),
    "bandwidth-tenant": Picture(_bandwidth_of_genomics, ".sluice-plot:has(figcaption:has-text('Downloads'))"),
}


def take(tab: Dashboard, name: str, picture: Picture) -> None:
    """Take one, cut it, and write it to :data:`FOLDER`."""
    picture.page(tab)
    tab.page.wait_for_load_state("networkidle")
    tab.page.wait_for_function(_DRAWN)
    tab.page.evaluate("document.fonts.ready.then(() => scrollTo(0, 0))")
    boxes = [one.bounding_box() for one in tab.page.locator(picture.last).all()]
    bottom = max(one["y"] + one["height"] for one in boxes if one)
    with Image.open(tab.picture(name)) as whole:
        part = whole.convert("RGB").crop((0, 0, whole.width, min(whole.height, round(bottom) + _MARGIN)))
    size = (WIDTH, round(part.height * WIDTH / part.width))
    small = part.resize(size, Image.Resampling.LANCZOS).quantize(_COLOURS, Image.Quantize.MAXCOVERAGE)
    small.save(FOLDER / f"{name}.png", optimize=True)
    print(f"took {name}", flush=True)


def take_all(folder: Path, names: Sequence[str]) -> list[str]:
    """Take the pictures called ``names`` of a cluster in ``folder``; return the faults of pages."""
    from docs.pictures.scene import Scene
    from tests.support.browser.browser import browser
    from tests.support.browser.dashboard import Dashboard

    with Scene(folder / "c") as scene, browser(folder / "profile") as context:
        context.set_default_timeout(_PATIENCE)
        tab = Dashboard(context, scene.layout, folder / "whole")
        with tab.client(ADMINISTRATOR) as ada, tab.client("alice") as alice:
            scene.prepare(ada, alice)
        user = ADMINISTRATOR
        tab.login(user)  # before the load: Horizon compiles its styles for the first page
        with scene.loaded():
            for name in names:
                if user != PICTURES[name].user:
                    user = PICTURES[name].user
                    tab.login(user)
                take(tab, name, PICTURES[name])
        return tab.findings.faults


def main() -> int:
    """Return 0 if all were taken of pages without faults."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures.take", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PICTURES)}; by default all")
    names = parser.parse_args().names or list(PICTURES)
    unknown = sorted(set(names) - PICTURES.keys())
    if unknown:
        parser.error(f"no picture `{unknown[0]}`, expected some of {', '.join(PICTURES)}")
    if os.geteuid() != 0:
        parser.error("the user is not root, expected root, whose volumes and loop devices are")
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        faults = take_all(folder, names)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for one in faults:
        print(f"a page has a fault: {one}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
