"""The common start of all processes of Sluice: command line, installed distribution, log."""
