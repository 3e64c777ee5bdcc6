"""From text to a syntax tree and back: tokens, keywords, units, grammar, nodes."""
