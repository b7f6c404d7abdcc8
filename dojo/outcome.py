"""What a grading point comes to: ok, a failure with its kind, or not graded and why."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class Failure(Exception):
    """A point is failed: "kind: sentence". `lines` are source lines to quote, `details` lines to add."""

    def __init__(
        self, kind: str, sentence: str, lines: Sequence[int] = (), details: Sequence[str] = ()
    ) -> None:
        super().__init__(f"{kind}: {sentence}")
        self.kind, self.lines, self.details = kind, lines, details


class NotGraded(Exception):
    """A point says nothing about the kernel: str(e) is why not, and what is known all the same."""


@dataclass(frozen=True)
class Outcome:
    """One point: "ok" with the figures, "FAIL" with the failure, or "-" with why it was not graded."""

    state: str
    text: str
    error: Exception | None = None

    @property
    def internal(self) -> bool:
        """Whether the grader itself is at fault."""
        return self.error is not None and not isinstance(self.error, Failure | NotGraded)


class Graded(Protocol):
    """Something with grading points; `outcomes` is filled in as they run."""

    outcomes: dict[str, Outcome]


P = ParamSpec("P")
Self = TypeVar("Self", bound=Graded)


def point(method: Callable[Concatenate[Self, P], str]) -> Callable[Concatenate[Self, P], None]:
    """Make a method a grading point: it runs once, its outcome is kept, and its error is raised every time.

    The method returns the figures of a pass, or raises Failure or NotGraded.
    """

    @functools.wraps(method)
    def run(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        __tracebackhide__ = True
        name = method.__name__
        if name not in self.outcomes:
            broken = any(outcome.internal for outcome in self.outcomes.values())
            self.outcomes[name] = judged(after_an_error if broken else lambda: method(self, *args, **kwargs))
        if error := self.outcomes[name].error:
            raise error

    return run


def judged(judge: Callable[[], str]) -> Outcome:
    try:
        return Outcome("ok", judge())
    except NotGraded as reason:
        return Outcome("-", str(reason), reason)
    except Failure as failure:
        return Outcome("FAIL", str(failure), failure)
    except Exception as error:
        return Outcome("FAIL", internal_error(error), error)


def after_an_error() -> str:
    raise NotGraded("not run after an internal error")


def internal_error(error: BaseException) -> str:
    """The grader's own fault in one line."""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"internal error: {what}; please report it (ARGS=--tb=long shows where)"
