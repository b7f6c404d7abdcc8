"""Small results kept by name in `.cache/`, safe against a crash, a second process and a flipped bit.

An entry is a JSON value under a digest of its own text; whatever does not match its digest was never stored.
Nothing here raises: without a writable folder the results are made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / ".cache"
KEPT = 256  # entries; about 40 KB each


def name_of(*parts: object) -> str:
    """An entry's name from everything that its value depends on (JSON-serialisable)."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def load(name: str) -> Any:
    """The value stored under `name`, or None."""
    file = FOLDER / f"{name}.json"
    try:
        digest, text = file.read_text(encoding="utf-8").split("\n", 1)
        os.utime(file)  # the oldest entries go first
    except (OSError, ValueError):
        return None
    return json.loads(text) if digest == _digest(text) else None


def store(name: str, value: Any) -> None:
    """Keep `value` (JSON-serialisable) under `name`; the entries used longest ago make room."""
    text = json.dumps(value)
    try:
        FOLDER.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=FOLDER, suffix=".part", delete=False
        ) as part:
            part.write(f"{_digest(text)}\n{text}")
        os.replace(part.name, FOLDER / f"{name}.json")
        _prune()
    except OSError:
        pass


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _prune() -> None:
    files = [file for file in FOLDER.iterdir() if file.suffix in (".json", ".part")]
    if len(files) > KEPT:
        ages = []
        for file in files:
            try:
                ages.append((file.stat().st_mtime, file))
            except OSError:  # another process was quicker
                pass
        for _, file in sorted(ages)[: -KEPT // 2]:
            file.unlink(missing_ok=True)
