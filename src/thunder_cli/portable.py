"""Text without what differs from one run or machine to another: addresses of objects, and absolute paths of files."""

import os
import re
from typing import Any

ADDRESS = re.compile(r"\b(at|of) 0x[0-9a-fA-F]{6,}")
FRAME = re.compile(r'(?<=File ")(/[^"\n]+)(?=")')
LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/")


def portable(x: Any, directory: str) -> Any:
    """JSON like `x`: what is in `directory` named as from there, other files of tracebacks by their last parts."""
    if isinstance(x, str):
        text = ADDRESS.sub(r"\1 0x...", x)
        text = FRAME.sub(lambda match: _place(match[1], directory), text) if 'File "' in text else text
        return text.replace(directory.rstrip(os.sep) + os.sep, "") if directory != os.sep else text
    if isinstance(x, dict):
        return {key: portable(value, directory) for key, value in x.items()}
    return [portable(value, directory) for value in x] if isinstance(x, list | tuple) else x


def _place(path: str, directory: str) -> str:
    if path.startswith(directory + os.sep):
        return path[len(directory) + 1 :]
    shorter = LIBRARY.sub("", path)
    return shorter if shorter != path else os.path.basename(path)
