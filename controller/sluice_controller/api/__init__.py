"""The REST API: views on top, then serializers and renderers, authentication and formats."""
