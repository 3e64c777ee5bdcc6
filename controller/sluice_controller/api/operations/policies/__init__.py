"""/policies: create, list, deploy, firings, effective policies."""
