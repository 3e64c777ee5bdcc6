"""The panel *Changes and locality*: authors of changes, rollback, and the location of data."""
