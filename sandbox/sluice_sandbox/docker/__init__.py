"""The Docker engine of Storlets: its client, the image, and their places."""
