"""The debugger in front of thunder: the `thunder` command."""
