"""Namespaces are refused at once, or stored and searchable; never taken and then dropped."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.namespace import parse_namespace, project_namespace, read_scope
from sidecar.errors import InvalidNamespaceError


@pytest.mark.parametrize("name", ["a", "my-app", "org/app", "v1.2_x", "A" * 200, "..."])
def test_good_names_are_kept(name: str) -> None:
    """Letters, digits and . _ - / make a name."""
    assert parse_namespace(f"project:{name}") == f"project:{name}"


@pytest.mark.parametrize(
    "text",
    ["", "*", "Global", "project:", "project:a b", "project:a:b", "project:a\\b", "project:..", "project:a/../b",
     "project:/a", "project:a//b", "project:a/", "project:😀", "project:" + "a" * 201, "a", "project:a\n"],
)  # fmt: skip
def test_bad_names_are_refused(text: str) -> None:
    """What could be taken for a path, a filter or another namespace is no name."""
    with pytest.raises(InvalidNamespaceError) as refused:
        parse_namespace(text)
    assert refused.value.metadata == {"field": "namespace"}


@given(st.text())
def test_any_text_is_either_a_namespace_or_refused(text: str) -> None:
    """There is no third outcome."""
    namespace = f"project:{text}"
    is_name = re.fullmatch(r"[A-Za-z0-9._\-/]{1,200}", text) and not {"", ".", ".."} & set(text.split("/"))
    if is_name:
        assert parse_namespace(namespace) == namespace
    else:
        with pytest.raises(InvalidNamespaceError):
            parse_namespace(namespace)


def test_reads_cover_the_project_and_global_by_default() -> None:
    """What holds everywhere is found in every project; other projects are not."""
    scope = read_scope("", project="app")
    assert scope.names == ("project:app", "global")
    assert read_scope("", project="").names == ("global",)
    assert read_scope("*", project="app").covers("project:other")
    assert not read_scope("project:app", project="app").covers("global")
    assert project_namespace("") == "global"
