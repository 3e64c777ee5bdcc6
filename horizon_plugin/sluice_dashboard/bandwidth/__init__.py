"""The panel *Bandwidth*, which both dashboards have: what tenants are promised, get and move, and where."""
