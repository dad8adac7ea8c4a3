"""The schedules of topi. Each gives a schedule without steps, which the compiler fills in for the device:
programs that ask for one by name run as they are."""

from .._base.error import public
from .._schedule.schedule import Schedule, create_schedule


class Schedules:
    """topi.generic, topi.x86 and topi.cuda: any `schedule_*` is there."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        if not name.startswith("schedule_"):
            raise AttributeError(f"topi.{self.__name__} has no {name}")

        def schedule(*arguments, **options):
            if arguments and isinstance(arguments[0], Schedule):
                return arguments[0]
            return create_schedule(arguments[0] if arguments else options["outs"])

        schedule.__name__ = schedule.__qualname__ = name
        schedule.__doc__ = "A schedule without steps, which the compiler fills in."
        return public(schedule)


x86 = Schedules("x86")
cuda = Schedules("cuda")


def __getattr__(name):
    return getattr(Schedules("generic"), name)
