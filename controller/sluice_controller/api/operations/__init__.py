"""Views: parse, call a service or a selector, render."""
