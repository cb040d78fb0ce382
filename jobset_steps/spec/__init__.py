"""What an author writes: models of JobSet, defaults, rules, templates with holes, names. Pure; starts nothing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["spec_hash"]


def spec_hash(tree: Any) -> str:
    """SHA-256 (hexadecimal) of an author's input as canonical JSON: the same however its keys were ordered."""
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
