"""The pages of policies, which both dashboards have."""
