"""Tags, which classic programs hang on operations and look for later."""

import functools

from .._base.error import invalid, public


class TagScope:
    """Every operation made inside `with` has the tag. It may also decorate a function."""

    _current = None

    def __init__(self, tag):
        self.tag = tag

    def __enter__(self):
        if TagScope._current is not None:
            raise invalid(
                "TAG_SCOPE", f"tag_scope {self.tag} stands inside tag_scope {TagScope._current}"
            )
        TagScope._current = self.tag
        return self

    def __exit__(self, *exception):
        TagScope._current = None

    def __call__(self, function):
        @functools.wraps(function)
        def tagged(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return tagged


@public
def tag_scope(tag):
    """A scope in which operations get a tag: `with te.tag_scope("conv"):`."""
    return TagScope(tag)


def current(tag):
    """The tag of a new operation whose maker gave `tag`."""
    return tag or TagScope._current or ""
