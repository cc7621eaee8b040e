"""`python -m thunder_cli` and `thunder`: the command. Until it runs, Ctrl-C ends it without a word."""

import os
import signal

signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def main() -> None:
    from thunder_cli.app import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
