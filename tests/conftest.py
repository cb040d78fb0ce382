"""What every tier shares: golden files, compared by default and written anew with --regenerate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: text is what tests/golden/<name> holds; `pytest --regenerate` writes it there."""
    regenerate = request.config.getoption("--regenerate")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"{path} is not there: make golden writes it; read it before you commit it"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs: if that is meant, make golden"

    return compare
