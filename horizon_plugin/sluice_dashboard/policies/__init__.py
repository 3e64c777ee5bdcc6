"""The pages of policies in both dashboards."""
