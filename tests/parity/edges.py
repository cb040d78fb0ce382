"""Values on both sides of every boundary of a form: names, keys, numbers, quantities, and values of the wrong type."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = [
    "NUMBERS",
    "QUANTITIES",
    "WRONG",
    "key",
    "label",
    "label_value",
    "labels",
    "mostly",
    "quantity",
    "some",
    "subdomain",
]

NUMBERS = [
    -(2**31) - 1,
    -(2**31),
    -1,
    0,
    1,
    2,
    255,
    256,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    1.5,
    "1",
    True,
    None,
]
QUANTITIES = ["", "1x", "4GB", "1Ki2", "-1", " 1", "1e", "e3", ".", "1.5.5", "1Mi ", "1K", "--1", "1e1.5", "٣", "1.", ".5", "1E", "1e2", "1E2", "+1", "1n", "0.1m", "1_0", "1e-3", 0, -1, 1.5, True, [], "12345678901234567890", "9Ei", "1e30", "1Zi", "0x1"]  # fmt: skip
WRONG: list[Any] = [
    None,
    "",
    "x",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    [{}],
    ["x"],
    {"x": "y"},
    {"x": None},
    "x" * 64,
    2**31,
    2**63,
]


def mostly(good: Any, odd: Any) -> st.SearchStrategy[Any]:
    """A good value four times out of five; both are lists of values or strategies."""
    good, odd = (one if isinstance(one, st.SearchStrategy) else st.sampled_from(one) for one in (good, odd))
    return st.sampled_from([good, good, good, good, odd]).flatmap(lambda chosen: chosen)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping that has each field half of the time; `x__` stands for fields that are always there."""
    always = {name.removesuffix("__"): value for name, value in fields.items() if name.endswith("__")}
    return st.fixed_dictionaries(
        always, optional={name: value for name, value in fields.items() if not name.endswith("__")}
    )


def label() -> st.SearchStrategy[Any]:
    return mostly(
        ["a", "a-b", "0a", "7", "x" * 63],
        ["", "A", "-a", "a-", "a_b", "a.b", "x" * 64, "é", "a b", "a\n", "٣", 1, None],
    )


def subdomain() -> st.SearchStrategy[Any]:
    long = ".".join(["x" * 63] * 4)
    return mostly(
        ["a", "a-b.c", "0.1", "x" * 64, long[:253]],
        ["", "A", ".a", "a.", "a..b", "a_b", "a-.b", "x" * 254, "a\n", "a/b", 1, None],
    )


def key() -> st.SearchStrategy[str]:
    return mostly(
        ["a", "A_b.c-d", "example.com/a", "x" * 63, "x" * 253 + "/a", "7"],
        [
            "",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "a-",
            "x" * 64,
            "EXAMPLE.com/a",
            "é",
            "a b",
            "x" * 254 + "/a",
            "a\n",
            "Ab/c",
        ],
    )


def label_value() -> st.SearchStrategy[Any]:
    return mostly(
        ["", "a", "A.b_c-d", "x" * 63, "1"], ["-a", "a-", "x" * 64, "a b", "é", "a\n", "a/b", 1, True, None]
    )


def labels() -> st.SearchStrategy[Any]:
    return mostly(
        st.dictionaries(key(), label_value(), max_size=2),
        [
            None,
            {},
            [],
            "x",
            {"a": 1},
            {"a": ["b"]},
            {"job-name": "x"},
            {"controller-uid": "x"},
            {"batch.kubernetes.io/job-name": "x"},
        ],
    )


def quantity() -> st.SearchStrategy[Any]:
    return mostly(["1", "500m", "4Gi", "0", 1, "0.5", "1e3", "2Mi", "100"], QUANTITIES)
