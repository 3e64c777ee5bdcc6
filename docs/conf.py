"""The configuration of Sphinx: ``make docs``.

Pages are Markdown (MyST), the theme is OpenStack's, release notes come from reno.  A link to a file outside of ``docs``
becomes a download of that file, and a link to a folder its text.
"""

from __future__ import annotations

import configparser
import os
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).resolve().parent
_setup = configparser.ConfigParser()
_setup.read(DOCS.parent / "setup.cfg", encoding="utf-8")

project = "Sluice"
author = "the authors of Sluice"
project_copyright = author
version = release = _setup["metadata"]["version"]

extensions = ["myst_parser", "openstackdocstheme", "reno.sphinxext"]
highlight_language = "none"
# --option is not a dash
smartquotes = False
myst_heading_anchors = 4

html_theme = "openstackdocs"
# by default the theme sends page views to the analytics of OpenStack
html_theme_options = {"analytics_tracking_code": "", "display_badge": False, "sidebar_search": True}
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
templates_path = ["_templates"]
openstackdocs_auto_name = False
openstackdocs_auto_version = False


class LinksOutOfDocs(SphinxTransform):
    """Resolves links to files and folders that are not pages, before MyST searches for such pages."""

    default_priority = 500

    def apply(self) -> None:
        """Called by Sphinx for each page."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for link in list(self.document.findall(addnodes.pending_xref)):
            target = _target(link, folder)
            if target is None or not target.exists() or (target.is_relative_to(DOCS) and target.suffix == ".md"):
                continue
            if target.is_dir():
                link.replace_self(link.children)
            else:
                path = os.path.relpath(target, folder)
                download = addnodes.download_reference("", "", *link.children, refdoc=self.env.docname, reftarget=path)
                link.replace_self(download)


class ReleaseTitle(SphinxTransform):
    """Names the release in the page of release notes: without tags reno assigns all notes to 0.0.0."""

    default_priority = 500

    def apply(self) -> None:
        """Called by Sphinx for each page."""
        if self.env.docname == "releasenotes":
            for title in self.document.findall(nodes.title):
                if title.astext() == "0.0.0":
                    title.replace_self(nodes.title("", release))


def _target(link: addnodes.pending_xref, folder: Path) -> Path | None:
    """The path of a Markdown link on a page in ``folder``; None for other links."""
    if link.get("reftype") != "myst":
        return None
    if link.get("refdomain") == "doc":
        return (DOCS / f"{link['reftarget']}.md").resolve()
    path = str(link["reftarget"]).partition("#")[0]
    return (folder / path).resolve() if path else None


def show_hidden_pages(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Make the theme's sidebar show toctrees whose pages an index lists in its own words; called for each page."""
    context["toctree"] = partial(context["toctree"], includehidden=True)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", show_hidden_pages)
    app.add_lexer("sluice", TextLexer)
    app.add_transform(LinksOutOfDocs)
    app.add_transform(ReleaseTitle)
