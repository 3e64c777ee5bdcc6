"""What every process of ours begins with: its command line, the installation that it comes from, its log."""
