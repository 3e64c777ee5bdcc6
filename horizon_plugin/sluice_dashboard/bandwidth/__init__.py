"""The panel *Bandwidth* of both dashboards: objectives, shares and measured rates of tenants, by node."""
