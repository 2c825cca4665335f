"""What a person typed is never a template of Ansible."""

from __future__ import annotations

from app.targets.literal import literal


def test_only_a_text_that_could_be_a_template_is_marked_wherever_it_stands() -> None:
    given = {"a": ["x {{ y }}", "{root}/mnt", 7, None], "b": {"c": "{% raw %}", "d": ("{# e #}",), "f": True}}
    assert literal(given) == {
        "a": [{"__ansible_unsafe": "x {{ y }}"}, "{root}/mnt", 7, None],
        "b": {"c": {"__ansible_unsafe": "{% raw %}"}, "d": [{"__ansible_unsafe": "{# e #}"}], "f": True},
    }
