"""What pytest adds to grade a kata: options, the `grade` fixture, and hooks that hand over to dojo.card."""

from pathlib import Path

import pytest

from dojo import card, cli, katas, saved, state
from dojo.grader import Grade
from dojo.outcome import Failure, NotGraded, internal_error

GRADES = pytest.StashKey[dict[Path, Grade]]()  # one Grade for each kata's test module


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dojo", "grading a kata")
    group.addoption(
        "--from", dest="where", default="", help="the folder or .cu file to grade (default: katas)"
    )
    group.addoption("--on", default="", help="cpu or gpu (default: simulator, then the GPU if there is one)")
    group.addoption("--seed", type=cli.seed, help="repeat the data and the random size of another grade")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[GRADES] = {}


def pytest_report_header(config: pytest.Config) -> str:
    return f"grading {config.option.where or 'katas'} on {config.option.on or 'the simulator, then the GPU'}"


def grades(node: pytest.Item) -> bool:
    """Whether it belongs to a kata's test module: the repository's own tests are none of ours."""
    return node.path.parent == katas.ROOT / "tests" / "katas"


@pytest.fixture
def grade(request: pytest.FixtureRequest) -> Grade:
    grades = request.config.stash[GRADES]
    if request.path not in grades:
        options = request.config.option
        grades[request.path] = cli.grade(
            request.module.TASK, request.path, options.where, options.on, options.seed
        )
    grade = grades[request.path]
    # pytest-benchmark's table has a row for each kernel that is timed.
    if request.config.pluginmanager.hasplugin("benchmark"):
        grade.table = lambda size, timings: saved.tabulate(
            request.getfixturevalue("benchmark"), grade, size, timings
        )
    return grade


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    return saved.machine()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function):
    """A failed point is a sentence, not a traceback."""
    if not grades(pyfuncitem):
        return (yield)
    outcome: Failure | NotGraded
    try:
        return (yield)
    except (Failure, NotGraded) as error:
        outcome = error
    if isinstance(outcome, NotGraded):
        pytest.skip(str(outcome))
    pytest.fail("\n".join([str(outcome), *outcome.details]), pytrace=False)


def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[object]) -> None:
    """An error outside the grading points would pass a quiet run unseen."""
    error = call.excinfo.value if call.excinfo else None
    known = [o.error for grade in node.config.stash[GRADES].values() for o in grade.outcomes.values()]
    if grades(node) and error and error not in known and not isinstance(error, pytest.fail.Exception):
        print(internal_error(error))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus != pytest.ExitCode.INTERRUPTED:
        if session.config.pluginmanager.hasplugin("terminalreporter"):
            print("\n")
        for grade in session.config.stash[GRADES].values():
            card.show(grade)
            if not session.config.option.where:
                state.record(grade)
