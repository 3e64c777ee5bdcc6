"""Opening items whose bytes are gone or out of date: they are made once, for all who read them."""
