"""The nodes and hosts: how far they are with changes, whether they live, and waiting for them."""
