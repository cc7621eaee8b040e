"""Views of events: text for the terminal, and JSON."""
