"""`python -m thunder_cli` is the `thunder` command."""

from thunder_cli.app import main

if __name__ == "__main__":
    main()
