"""Max-min fair shares of one method, as pure functions of arrays."""
