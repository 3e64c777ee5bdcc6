"""Who calls and what they may do: tokens, Keystone, rules."""
