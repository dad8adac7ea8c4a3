"""What numpy's users do with an array: on an array of a daemon it is done here, with its contents.

    x + f(x)    np.exp(x)    x.T    x.sum(axis=0)    x[1:3]    x == y

Each of these fetches the contents and gives what numpy gives, a numpy array; kernels take those as well. Into an array of
the daemon, `x += 1` or `out=x`, the result is sent back.
"""

import numpy as np

# Methods and properties that are numpy's own.
_METHODS = (
    "all any argmax argmin argsort astype clip cumsum dot flatten max mean min nonzero prod ravel repeat reshape round "
    "squeeze std sum swapaxes take tobytes trace transpose var"
).split()
_PROPERTIES = ("T", "flat", "itemsize", "real", "imag")


class NumpyHabits(np.lib.mixins.NDArrayOperatorsMixin):
    """Operators, functions, methods and indices of numpy's; NDArray adds `numpy()` and `copyfrom()`."""

    __slots__ = ()
    # Two of them are equal element by element, and the same key only when they are the same.
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        given = tuple(_contents(value) for value in inputs)
        options = {key: _contents(value) for key, value in options.items()}
        if out is None:
            return getattr(ufunc, method)(*given, **options)
        targets = tuple(_contents(value) for value in out)
        result = getattr(ufunc, method)(*given, out=targets, **options)
        for value, target in zip(out, targets):
            if isinstance(value, NumpyHabits):
                value.copyfrom(target)
        return (out[0] if len(out) == 1 else out) if result is not NotImplemented else result

    def __array_function__(self, function, types, args, kwargs):
        out = kwargs.get("out")
        result = function(*_contents(args), **_contents(kwargs))
        if isinstance(out, NumpyHabits):
            out.copyfrom(result)
            return out
        return result

    def __getitem__(self, index):
        return self.numpy()[_contents(index)]

    def __setitem__(self, index, value):
        values = self.numpy()
        values[_contents(index)] = _contents(value)
        self.copyfrom(values)

    def __iter__(self):
        return iter(self.numpy())

    def __contains__(self, value):
        return value in self.numpy()

    def __bool__(self):
        return bool(self.numpy())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        return self.numpy().__index__()

    def tolist(self):
        """The numbers, as nested lists of Python's."""
        return self.numpy().tolist()

    def item(self, *index):
        """The only number, or that at an index, as one of Python's."""
        return self.numpy().item(*index)


def _contents(value):
    """The value with numpy arrays in the place of those of a daemon."""
    if isinstance(value, NumpyHabits):
        return value.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_contents, value))
    if type(value) is dict:
        return {key: _contents(item) for key, item in value.items()}
    return value


def _method(name):
    def method(self, *args, **kwargs):
        out = kwargs.get("out")
        result = getattr(self.numpy(), name)(*_contents(args), **_contents(kwargs))
        if isinstance(out, NumpyHabits):
            out.copyfrom(result)
            return out
        return result

    method.__name__, method.__qualname__ = name, f"NDArray.{name}"
    method.__doc__ = f"As numpy's, of the contents.\n\n{getattr(np.ndarray, name).__doc__ or ''}"
    return method


for _name in _METHODS:
    setattr(NumpyHabits, _name, _method(_name))
for _name in _PROPERTIES:
    setattr(NumpyHabits, _name, property(lambda self, name=_name: getattr(self.numpy(), name)))
