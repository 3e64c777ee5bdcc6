"""A member and a member of another project open all URLs of a live cluster's dashboard: refused, or their own data.

Given a policy of the project acme, alice is a member of acme and ulf one of umbrella.
"""

import pytest
from tests.support.browser.pages import PARAMETERS, registered_pages

POLICY = "FOR CONTAINER acme/hidden-ledger DO SET noop"
#: Texts that users outside acme must not read.
SECRET = "hidden-ledger"


@pytest.fixture(scope="module")
def pages(horizon_cluster):
    return registered_pages(horizon_cluster.layout)


@pytest.fixture
def things(dashboard):
    """Parameters of URLs of acme's objects."""
    with dashboard.client("ada") as client:
        created = client.create_policy(POLICY, wait=10)
        yield {**PARAMETERS, "policy_id": created["id"]}
        client.delete_policy(created["id"])


def walk(dashboard, pages, things):
    """URL → status and text of every page, section and plot."""
    for page in pages:
        for url in page.urls(things) if page.kind != "ScriptView" else ():
            response = dashboard.page.request.get(dashboard.url + url, max_redirects=0)
            yield url, response.status, response.text()


def of_dashboard(pages, name):
    return [one for one in pages if one.name.startswith(f"horizon:{name}:")]


def test_a_member_is_refused_every_page_of_administrators(dashboard, pages, things):
    dashboard.login("alice")
    opened = [
        (url, status) for url, status, _ in walk(dashboard, of_dashboard(pages, "sluice"), things) if status != 403
    ]
    assert opened == []


def test_a_member_sees_what_is_its_projects_and_a_stranger_nothing_of_it(dashboard, pages, things):
    own = of_dashboard(pages, "sluice_project")
    dashboard.login("ulf")
    told = [url for url, _, text in walk(dashboard, pages, things) if SECRET in text]
    assert told == []
    failed = [(url, status) for url, status, _ in walk(dashboard, own, things) if status not in (200, 302, 403, 404)]
    assert failed == []


def test_a_reader_is_shown_no_link_to_a_form(dashboard, pages, things):
    """The API would refuse every change."""
    dashboard.login("rita")
    forms = {one.url(things) for one in pages if one.kind == "ActionView"}
    offered = []
    for page in of_dashboard(pages, "sluice_project"):
        if page.kind == "ScriptView":
            continue
        dashboard.open(page.url(things))
        links = dashboard.page.locator(".sluice a").evaluate_all("links => links.map(one => one.pathname)")
        for link in sorted(forms.intersection(links)):
            offered.append(f"{page.name} shows {link}")
    assert offered == []
