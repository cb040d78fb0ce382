"""The base of every model of the API: frozen, strict about names and types, camelCase outside, snake_case inside.

What was not set is not written, so a round trip neither loses nor invents a field. Rules live elsewhere: a model holds
whatever has the right shape.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, Strict, model_serializer
from pydantic.alias_generators import to_camel

__all__ = ["Bool", "Int", "Model", "Str"]

# A number is never taken from text, nor text from a number: the API server would refuse what we let pass.
Int = Annotated[int, Strict()]
Str = Annotated[str, Strict()]
Bool = Annotated[bool, Strict()]


class Model(BaseModel):
    """Immutable; unknown fields are errors; either spelling of a name is taken."""

    # Validators are built when a model is first used: authoring imports many and uses few.
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    @model_serializer(mode="wrap")
    def _without_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # An empty list is not the same as none: the webhook refuses `dependsOn: []` on the first replicated job.
        return {key: value for key, value in handler(self).items() if value is not None and value != []}

    def to_dict(self) -> dict[str, Any]:
        """Plain camelCase data."""
        return self.model_dump(mode="json", by_alias=True)
