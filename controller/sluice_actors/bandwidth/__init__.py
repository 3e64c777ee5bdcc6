"""Allocates bandwidth: floors, ceilings and fair shares for flows, a round each second for the whole cluster."""
