"""``make demo``: a policy that switches on and off under load, and the checks."""
