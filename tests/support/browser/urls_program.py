"""``python urls_program.py <folder> <source roots as JSON>``: Sluice's pages as Horizon knows them, as JSON.

Run by the Python of Horizon's environment, with the settings in the cluster's folder; so it imports only the panels of
Sluice.  Each page has its ``name``, its ``kind`` (the base class), its ``path`` with ``%(parameter)s``, and
the ``parameters``; ``sections`` are those that refresh by themselves.
"""

import json
import os
import sys


def main(folder, roots):
    sys.path[0:0] = [folder, *roots]
    os.environ["DJANGO_SETTINGS_MODULE"] = "openstack_dashboard.settings"
    import django

    django.setup()
    from django.urls import get_resolver

    begin, horizon = get_resolver().namespace_dict["horizon"]
    found = []
    for dashboard in ("sluice", "sluice_project"):
        prefix, resolver = horizon.namespace_dict[dashboard]
        found += pages(resolver, f"/{begin}{prefix}", f"horizon:{dashboard}")
    print(json.dumps(found))


def pages(resolver, prefix, name):
    found = []
    for panel, (inner, below) in resolver.namespace_dict.items():
        found += pages(below, prefix + inner, f"{name}:{panel}")
    for pattern in resolver.url_patterns:
        if getattr(pattern, "name", None) is None:
            continue
        view = getattr(pattern.callback, "view_class", object)
        page = {"name": f"{name}:{pattern.name}", "kind": kind(view), "sections": list(getattr(view, "sections", ()))}
        for path, parameters in (one for entry in resolver.reverse_dict.getlist(pattern.name) for one in entry[0]):
            found.append({**page, "path": prefix + path, "parameters": parameters})
    return found


def kind(view):
    from sluice_dashboard.views import ActionView, PageView, PlotView, ScriptView

    kinds = (ActionView, PageView, PlotView, ScriptView)
    return next((base.__name__ for base in kinds if issubclass(view, base)), "other")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
