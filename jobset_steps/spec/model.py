"""The base of every model of the API: frozen, strict about names and types, camelCase outside, snake_case inside.

What was not set is not written, so a round trip neither loses nor invents a field. Rules live elsewhere: a model holds
whatever has the right shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

__all__ = ["Bool", "Int", "Int32", "Labels", "Model", "Str", "Texts"]


def _whole(value: Any) -> Any:
    """2.0 is the whole number 2, as the API server reads it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _texts(value: Any) -> Any:
    """A null among texts is empty text, in a mapping it is not there, as the API server reads it."""
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if item is not None}
    return ["" if item is None else item for item in value] if isinstance(value, list | tuple) else value


# A number is never taken from text, nor text from a number: the API server would refuse what we let pass.
Int = Annotated[int, BeforeValidator(_whole), Strict(), Field(ge=-(2**63), lt=2**63)]
Int32 = Annotated[int, BeforeValidator(_whole), Strict(), Field(ge=-(2**31), lt=2**31)]
Str = Annotated[str, Strict()]
Bool = Annotated[bool, Strict()]
Texts = Annotated[tuple[Str, ...], BeforeValidator(_texts)]
Labels = Annotated[dict[Str, Str], BeforeValidator(_texts)]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


class Model(BaseModel):
    """Immutable; unknown fields are errors; either spelling of a name is taken."""

    # Validators are built when a model is first used: authoring imports many and uses few.
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_as_the_server_reads_it(cls, data: Any) -> Any:
        """Null is unset where a field has no null, and an empty mapping among mappings."""
        if not isinstance(data, Mapping):
            return data
        kinds = _kinds(cls)
        read = {}
        for key, value in data.items():
            inner = kinds.get(key, ())
            if value is None and key in kinds and type(None) not in inner:
                continue
            if isinstance(value, list) and None in value and inner and _is_model(inner[0]):
                value = [{} if item is None else item for item in value]
            read[key] = value
        return read

    @model_serializer(mode="wrap")
    def _without_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # An empty list is not the same as none: the webhook refuses `dependsOn: []` on the first replicated job.
        return {key: value for key, value in handler(self).items() if value is not None and value != []}

    def to_dict(self) -> dict[str, Any]:
        """Plain camelCase data."""
        return self.model_dump(mode="json", by_alias=True)


@cache
def _kinds(model: type[Model]) -> dict[str, tuple[Any, ...]]:
    """What the type of each field is made of, by either spelling of its name."""
    return {
        name: get_args(field.annotation)
        for key, field in model.model_fields.items()
        for name in (key, field.alias or key)
    }
