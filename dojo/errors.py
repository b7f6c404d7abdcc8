"""The compiler's errors as the learner reads them: its own words, cut to what fits; no compiling here."""

import re

LINES, LONGEST_LINE = 8, 200  # of what is shown: lines, and characters in a line

ERROR = re.compile(
    r"(?:.+\(\d+\)|At end of source): (?:(?:catastrophic |internal )?error|warning)|ptxas .*(?:error|fatal)"
)
TAIL = re.compile(r"\d+ (?:catastrophic )?errors? detected|Compilation terminated|ptxas (?:info| +\.)|\s*$")
# An error about what is not marked as the GPU's, with the line of code and the place in it.
HOSTS = re.compile(
    r"^(?P<path>.*)\((?P<line>\d+)\): error: .*is considered a host (?:function|variable).*\n"
    r"  (?P<code>.*)\n  (?P<indent> *)\^\n*",
    re.MULTILINE,
)
PLAINLY = {
    "function": "a function of the GPU needs __device__ before it (or constexpr, for a constant)",
    "variable": "a variable outside of a function needs constexpr before it, or __device__ or __constant__",
}


def first_errors(log: str, path: str, source: str) -> str:
    """The first two errors of the compiler's log, at most eight lines, then how many are left."""
    last = source.count("\n") + (not source.endswith("\n"))
    log = re.sub(
        r"^At end of source: (.*)",
        lambda found: f"{path}({last}): {found[1]} at the end of the file",
        log,
        flags=re.MULTILINE,
    )
    errors: list[list[str]] = []
    for line in log.replace("\0", "").split("\n"):
        if TAIL.match(line):
            continue
        if ERROR.match(line) or not errors:
            errors.append([])
        errors[-1].append(readable(line, path))
    told = errors[:2] if sum(map(len, errors[:2])) <= LINES else errors[:1]
    lines = [line for error in told for line in error][:LINES]
    if left := len(errors) - len(told):
        lines.append(f"... and {left} more error{'s' * (left > 1)}")
    return "\n".join(lines) or f"{path}: the compiler refused this file and did not say why"


def readable(line: str, path: str) -> str:
    """One line, not too long, without odd characters; of a missing __device__ without NVRTC's options."""
    if line.startswith(f"{path}("):
        line = re.sub(
            r"(?<=: error: ).*is considered a host (function|variable).*",
            lambda found: PLAINLY[found[1]],
            line,
        )
    line = "".join(c if c.isprintable() else "?" for c in line).rstrip()
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 4] + " ..."


def without_constexpr(log: str, path: str, text: str) -> str:
    """The log without the errors that a constexpr function stands without __device__: nvcc takes that where
    its value is a constant.
    """
    lines = text.split("\n")

    def keep(error: re.Match[str]) -> str:
        if error["path"] != path:
            return error[0]
        number, column = int(error["line"]), len(error["indent"])
        head = "\n".join([*lines[: number - 1], lines[number - 1][:column]])
        return "" if re.search(r"\bconstexpr\b[^;{}]*$", head) else error[0]

    return HOSTS.sub(keep, log)


def only_constexpr(log: str, path: str, text: str) -> bool:
    """Whether the file has only this wrong."""
    left = without_constexpr(log, path, text)
    return left != log and ": error: " not in left


def first_host_name(log: str, path: str) -> str:
    """The name that the first error takes for the host's, if that is what it says; else ""."""
    found = HOSTS.match(log)
    if not found or found["path"] != path:
        return ""
    name = re.match(r"\w*", found["code"][len(found["indent"]) :])
    return name[0] if name else ""
