"""The policy language: parse, check, compile."""
