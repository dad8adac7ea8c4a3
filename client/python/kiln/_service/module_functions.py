"""The module's functions as methods of a connection: `connection.build(s, args)` is
`kiln.build(s, args, connection=connection)`."""

from .array import array, empty
from .build import build, compile, lower
from .connection import Connection
from .job import job, jobs
from .load import load_module
from .predict import predict
from .tune import tune


def _on_a_connection(function):
    def method(self, *args, **options):
        return function(*args, connection=self, **options)

    method.__name__ = function.__name__
    method.__qualname__ = f"Connection.{function.__name__}"
    method.__doc__ = f"As kiln.{function.__name__}, on this connection.\n\n{function.__doc__}"
    return method


for _function in (array, build, compile, empty, job, jobs, load_module, lower, predict, tune):
    setattr(Connection, _function.__name__, _on_a_connection(_function))
