"""The commands of `thunder`, one file each."""
