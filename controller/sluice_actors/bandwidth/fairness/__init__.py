"""Max-min fair division as pure functions of arrays."""
