"""Prints the JSON schema of an Outcome, as published in docs/outcome.schema.json."""

from __future__ import annotations

import json

from jobset_steps.outcome.types import Outcome

__all__ = ["schema_text"]


def schema_text() -> str:
    """The JSON schema of an Outcome as it is written out (draft 2020-12), with a line end."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Outcome.model_json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
