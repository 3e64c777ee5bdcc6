"""For tests of the API and of its clients: a client that checks answers, and a Swift that keeps code."""
