"""The panel *Changes and locality*: authors of changes, roll back, and the location of data."""
