"""An invalid request is reported before a failed ``If-Match``: RFC 9110, 13.2.1."""

import pytest

STALE = {"If-Match": '"9999"'}
STEREOTYPE = {"name": "gold", "text": "FOR {target} DO SET compression"}
FILTER = {"keyword": "parse", "environment": "storlet", "language": "java", "main": "org.x.Main"}
#: The path and the body that create an object, its path, and a valid and an invalid body.
RESOURCES = {
    "alias": ("/registry/aliases", {"name": "C1", "of": "target", "text": "AUTH_a"}, "C1", {"text": "AUTH_b"}, {}),
    "term": ("/registry/terms", {"term": "SHEETS", "patterns": ["ods"]}, "SHEETS", {"patterns": ["csv"]}, {}),
    "metric": ("/registry/metrics", {"name": "CPU_BUSY"}, "CPU_BUSY", {"help": "x"}, {"name": ""}),
    "group": ("/registry/gtenants", {"name": "gold", "tenants": ["AUTH_a"]}, "gold", {"tenant": "AUTH_b"}, {}),
    "group member": ("/registry/gtenants", {"name": "gold", "tenants": []}, "gold", {"tenants": []}, {"tenants": [1]}),
    "activation": ("/registry/filters", None, "compression", {"url": "http://a.example/{target}"}, {"url": ""}),
    "stereotype": ("/stereotypes", STEREOTYPE, "gold", {"help": "x"}, {"name": ""}),
    "dependency": ("/filters/dependencies", {"name": "a.jar"}, "a.jar", {"help": "x"}, {"name": ""}),
    "filter": ("/filters", FILTER, "parse", {"help": "x"}, {"keyword": ""}),
}


@pytest.mark.parametrize(("folder", "made", "name", "right", "wrong"), RESOURCES.values(), ids=RESOURCES)
def test_a_wrong_body_is_refused_before_the_version_is_compared(api, folder, made, name, right, wrong):
    if made is not None:
        answer = api.post(folder, made, format="json")
        assert answer.status_code == 201, answer.content
    stale = api.put(f"{folder}/{name}", right, format="json", headers=STALE)
    assert stale.status_code == 412, stale.content
    refused = api.put(f"{folder}/{name}", wrong, format="json", headers=STALE)
    assert refused.status_code == 400, refused.content
