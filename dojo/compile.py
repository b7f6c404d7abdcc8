"""CUDA C++ -> PTX for the simulator, a cubin for the card, and what the compiler says about both.

In here: what is sent to the compiler, how the file's own constants, registers and spills are read back, and
what is said of a kernel or a constant that the launch cannot find. Not in here: the compiler's process
(`dojo.nvrtc`), its own errors (`dojo.errors`), the cache.

A file's constants and its kernel are found by the compiler, never by a regular expression over CUDA: a few
lines appended to the file export them as global variables, whose initial values stand in the PTX. So
`constexpr int BM = 16 * TM;` works, and so do `#define`, `static const`, `enum` and templates.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dojo import cache, errors, nvrtc
from dojo.source import Source

PRELUDE = "dojo_prelude.h"
# Host headers that a .cu file includes by habit, and that NVRTC lacks. Of most a kernel needs nothing, or the
# prelude has it; of some it may use what <cuda/std/...> has too, or what CUDA has outside of std.
EMPTY = (
    "algorithm assert.h atomic bitset cassert cctype cerrno chrono complex condition_variable cstdarg ctime "
    "ctype.h cuda.h deque errno.h exception fstream functional future inttypes.h iomanip ios "
    "iostream istream iterator list map math.h memory mutex new numeric optional ostream queue random set "
    "sstream stack stdarg.h stdbool.h stdexcept stdio.h stdlib.h string string.h thread time.h typeinfo "
    "unistd.h unordered_map unordered_set vector"
)
STANDARD = "array cfloat climits cstddef cstdint cstring limits tuple type_traits utility"
OF_C = {"float.h": "cfloat", "limits.h": "climits", "stddef.h": "cstddef", "stdint.h": "cstdint"}
WITHOUT_STD = {
    "cmath": "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 "
    "fabs floor fma fmax fmin fmod hypot isfinite isinf isnan ldexp log log10 log1p log2 pow remainder rint "
    "round signbit sin sinh sqrt tan tanh tgamma trunc",
    "cstdio": "printf",
    "cstdlib": "abs",
}


def _standard(name: str) -> str:
    """The text of a header: NVIDIA's of this name, and its names in std."""
    return (
        f"#if __has_include(<cuda/std/{name}>)\n#include <cuda/std/{name}>\n"
        "namespace cuda { namespace std {} }\nnamespace std { using namespace cuda::std; }\n#endif\n"
    )


HEADERS = {
    PRELUDE: (Path(__file__).parent / "prelude.h").read_text(encoding="utf-8"),
    **dict.fromkeys(EMPTY.split(), ""),
    **{name: _standard(name) for name in STANDARD.split()},
    **{name: _standard(standard) for name, standard in OF_C.items()},
    **{
        header: "namespace std {" + "".join(f" using ::{name};" for name in names.split()) + " }\n"
        for header, names in WITHOUT_STD.items()
    },
}
OPTIONS = ("--std=c++17", "-lineinfo", "--disable-warnings", f"--pre-include={PRELUDE}")
# Makes NVRTC take a constexpr function without __device__. It would also hide a forgotten __device__
# elsewhere: so it is only for a file that has nothing else wrong.
DEVICE = "--device-as-default-execution-space"
FORMAT = 4  # of a cache entry; count it up when this file makes something else of the same source
LONGEST_SOURCE = 1_000_000  # characters
LINE = re.compile(r"^[ \t]*#[ \t]*(?:line\b|\d).*", re.MULTILINE)

# Exported names: "dojo_kernel", and "dojo_constant_" before each constant.
CONSTANT = "dojo_constant_"
MISSING = -(1 << 62)  # the value of what the file does not define


class CompileError(Exception):
    """The file cannot be graded; str(e) is the text for the learner, without the failure's kind.

    `kind` is "compile", or "launch" for a kernel that compiles but that no card can hold. `line` is the
    source line to quote, 0 for none.
    """

    def __init__(self, text: str, kind: str = "compile", line: int = 0) -> None:
        super().__init__(text)
        self.kind, self.line = kind, line


class Unguarded(CompileError):
    """The file fixes a constant that `defines` would vary."""


@dataclass(frozen=True)
class Resources:
    """What one kernel takes, by ptxas's report for `Compiled.arch`: registers a thread, the rest in bytes."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int  # static; dynamic shared memory comes on top at the launch
    max_threads: int = 0  # a block's limit by the kernel's own __launch_bounds__, 0 without


@dataclass(frozen=True)
class Compiled:
    """One file, compiled. `resources` and the two codes know a kernel by its PTX name: see `entry`."""

    ptx: str  # for compute_80, with .loc lines
    cubin: bytes  # for `arch`
    arch: str  # such as "sm_80"
    resources: Mapping[str, Resources]
    constants: Mapping[str, int]
    kernels: Mapping[str, str] = field(default_factory=dict)  # name in the signature -> PTX name
    parameters: Sequence[str] = ()  # of the kernel in the signature, as the file names them, if that is known

    def entry(self, name: str) -> str:
        """The PTX name of the kernel called `name` in the source, mangled or not. Raises KeyError."""
        if name in self.kernels:
            return self.kernels[name]
        for entry in self.resources:
            if entry == name or (
                entry.startswith("_Z") and re.search(rf"(?<!\d){len(name)}{re.escape(name)}", entry)
            ):
                return entry
        raise KeyError(f"no kernel {name}; there is: {', '.join(self.resources)}")


@dataclass(frozen=True)
class Function:
    """`constexpr int NAME(int ARGUMENT)` in the file, or one constant for every number instead."""

    name: str  # "rows_per_block"
    argument: str  # "cols"
    constant: str  # "ROWS_PER_BLOCK"
    numbers: Sequence[int]  # for which its value is wanted

    @property
    def signature(self) -> str:
        return f"constexpr int {self.name}(int {self.argument})"

    def at(self, number: int) -> str:
        """The name of the constant that its value is."""
        return f"{self.name}_{number}"


def start() -> None:
    """Begin the compiler's process without waiting for it. Never raises."""
    nvrtc.start()


def read_source(path: str | Path) -> str:
    """The text of a source file: UTF-8, with U+FFFD for whatever is not. Raises OSError."""
    return Path(path).read_bytes().decode("utf-8-sig", errors="replace")


def compile_cuda(
    source: str,
    path: str,
    *,
    arch: str = "sm_80",
    constants: Sequence[str] = (),
    optional: Mapping[str, int] | None = None,
    functions: Sequence[Function] = (),
    defines: Mapping[str, int] | None = None,
    signature: tuple[str, str] | None = None,
    time_limit: float = nvrtc.TIME_LIMIT,
) -> Compiled:
    """Compile `source` to PTX (compute_80) and to a cubin for `arch`.

    `path` names the file in messages: "katas/02_tiled.cu". `constants` are names that the file must define as
    whole numbers; `optional` ones have a default; `functions` give a constant for each of several numbers.
    `defines` become -D options, for a file that guards them by #ifndef. `signature` is a kernel's name and
    parameters: ("scale", "float *x, int n"). `time_limit` is in seconds, for each of the two compiles.
    Raises CompileError, and ValueError for a one-letter define.
    """
    optional, defines = dict(optional or {}), dict(defines or {})
    if short := [name for name in defines if len(name) == 1]:
        raise ValueError(
            f"-D{short[0]}=... would change NVRTC's own headers: one-letter names cannot be defined"
        )
    if len(source) > LONGEST_SOURCE:
        raise CompileError(
            f"{path} is {len(source):,} characters long; a kernel file stops at {LONGEST_SOURCE:,}"
        )
    # NVRTC would take NUL for the end of the file; a lone surrogate has no UTF-8.
    source = source.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    source = LINE.sub("", source)  # a message is about the lines of this file
    job = _Job(
        source, path, arch, tuple(constants), optional, tuple(functions), defines, signature, time_limit
    )
    name = cache.name_of(FORMAT, _compiler(), HEADERS, OPTIONS, source, job.exports(), path, arch, defines)
    if (stored := cache.load(name)) is not None:
        return _from_json(stored)
    try:
        compiled = job.run()
    except nvrtc.Died as death:
        raise CompileError(f"{path}: the compiler {death}") from None
    except nvrtc.NoCompiler as missing:
        raise CompileError(str(missing)) from None
    # With an #include "..." the result depends on another file too.
    if not re.search(r'^[ \t]*#[ \t]*include[ \t]*"', source, re.MULTILINE):
        cache.store(name, _to_json(compiled))
    return compiled


def _compiler() -> str:
    """The compiler's identity for the cache: known without the child where NVRTC is an installed package."""
    try:
        return nvrtc.installed() or nvrtc.version()
    except nvrtc.NoCompiler as missing:
        raise CompileError(str(missing)) from None


# ------------------------------------------------------------------------------------------------ one compile


@dataclass(frozen=True)
class _Job:
    source: str
    path: str
    arch: str
    constants: Sequence[str]
    optional: Mapping[str, int]
    functions: Sequence[Function]
    defines: Mapping[str, int]
    signature: tuple[str, str] | None
    time_limit: float

    def run(self) -> Compiled:
        if taken := re.search(r"^[ \t]*#[ \t]*define[ \t]+(dojo_\w+)", self.source, re.MULTILINE):
            raise self.refusal(taken[1], "is the grader's own: another name, please")
        text = self.source + self.exports()
        answer = self.compile("compute_80", text)
        if not answer.output:
            self.refuse(answer.log)
        ptx, values = _take_exports(answer.output.decode(errors="replace"))
        kernels = {self.signature[0]: values.pop("dojo_kernel")} if self.signature else {}
        entries = re.findall(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", ptx, re.MULTILINE)
        for name, entry in kernels.items():
            if entry not in entries:
                raise self.refusal(name, "is no kernel: it must be a __global__ void function with a body")
        if not entries:
            raise CompileError(f"{self.path} contains no kernel, no function that is __global__ void")
        numbers = {name.removeprefix(CONSTANT): int(value) for name, value in values.items()}
        if ignored := [name for name, value in self.defines.items() if numbers.get(name, value) != value]:
            raise Unguarded(self.unguarded(ignored[0]))
        for function in self.functions:
            if MISSING in (numbers[function.at(n)] for n in function.numbers):
                raise CompileError(
                    f"{self.path} defines neither {function.constant} nor {function.name}: the launch needs "
                    f"{_constant(function.constant)} or {function.signature}"
                )
        # The card gets the file as it is: where a kernel's address is taken, ptxas may use other registers
        # and spill. But a template is a kernel only by the export.
        for code in (self.source, text):
            answer = self.compile(self.arch, code)
            if not answer.output:
                self.refuse_assembly(answer.log)
            resources = _resources(answer.log, ptx)
            if resources.keys() >= set(kernels.values()):
                break
        if self.signature and kernels[self.signature[0]] not in resources:
            raise CompileError(f"NVRTC {nvrtc.version()} did not report what {self.path} needs of registers")
        parameters = Source(self.source).parameters(self.signature[0]) if self.signature else ()
        return Compiled(ptx, answer.output, self.arch, resources, numbers, kernels, parameters)

    def compile(self, arch: str, text: str, defines: Mapping[str, int] | None = None) -> nvrtc.Answer:
        options = [f"--gpu-architecture={arch}", *OPTIONS]
        options += [
            f"-D{name}={value}" for name, value in (self.defines if defines is None else defines).items()
        ]
        if arch.startswith("sm_"):
            options.append("--ptxas-options=-v")
        answer = nvrtc.compile_program(text, self.path, options, HEADERS, time_limit=self.time_limit)
        if not answer.output and errors.only_constexpr(answer.log, self.path, text):
            return nvrtc.compile_program(
                text, self.path, [*options, DEVICE], HEADERS, time_limit=self.time_limit
            )
        return answer

    def exports(self) -> str:
        """The appended text. A #line before each export names it in the compiler's errors."""
        # Two newlines: the file may end in a comment, or in a backslash.
        text = "\n\n"
        if self.signature:
            name, parameters = self.signature
            text += '#line 1 "dojo_kernel"\n'
            text += f'extern "C" __device__ void (*dojo_kernel)({parameters}) = &::{name};\n'
        by_function = dict.fromkeys((function.constant for function in self.functions), MISSING)
        for name, default in {**self.optional, **by_function}.items():
            # A macro is not found by ::, a constant not by #ifdef; a name in the file hides the default's.
            text += f'#line 1 "{CONSTANT}{name}"\n#ifdef {name}\n{_export(name, name)}#else\n'
            text += f"namespace dojo_default {{ enum : long long {{ {name} = {default} }}; }}\n"
            text += f"using namespace dojo_default;\n{_export(name, f'::{name}')}#endif\n"
        for name in self.constants:
            text += f'#line 1 "{CONSTANT}{name}"\n{_export(name, name)}'
        for function in self.functions:
            constant = f"dojo_constant_{function.constant}"
            text += f'#line 1 "{CONSTANT}{function.at(function.numbers[0])}"\n'
            text += (
                "namespace dojo_default { template <class Number> __host__ __device__ constexpr long long "
            )
            text += f"{function.name}(Number) {{ return {constant}; }} }}\n"
            text += "using namespace dojo_default;\n"
            for n in function.numbers:
                text += f'#line 1 "{CONSTANT}{function.at(n)}"\n'
                text += _export(function.at(n), f"::{function.name}({n})")
        return text

    def refuse(self, log: str) -> None:
        """Raise the error in the first compile's `log`: the learner's own before those of the exports."""
        alone = self.compile("compute_80", self.source)
        if not alone.output:
            # constexpr int BM = 16; has become constexpr int 32 = 16;
            begin = re.search(r"\): error: expected an identifier\n(.*)", alone.log)
            if fixed := [name for name in self.defines if begin and re.search(rf"\b{name}\b", begin[1])]:
                raise Unguarded(self.unguarded(fixed[0]))
            log = errors.without_constexpr(alone.log, self.path, self.source)
            raise self.host_only(log) or CompileError(errors.first_errors(log, self.path, self.source))
        for export, message in re.findall(r"^(dojo_\w+)\(\d+\): error: (.*)", log, re.MULTILINE):
            if export == "dojo_kernel":
                raise self.wrong_kernel(message)
            raise self.wrong_constant(export.removeprefix(CONSTANT), message)
        raise CompileError(errors.first_errors(log, self.path, self.source))

    def refusal(self, name: str, what: str) -> CompileError:
        """A sentence about something in the file, at the first line that has its name."""
        line = Source(self.source).line_of(name)
        return CompileError(f"{self.path}{f':{line}' if line else ''} {name} {what}", line=line)

    def host_only(self, log: str) -> CompileError | None:
        """The sentence for a constant or function of the launch that the compiler takes for the host's."""
        name = errors.first_host_name(log, self.path)
        for function in self.functions:
            if name == function.name:
                return self.refusal(name, f"must be constexpr: {function.signature}")
        if name in (*self.constants, *self.optional, *(function.constant for function in self.functions)):
            return self.refusal(name, f"is a variable, and the launch needs a constant: {_constant(name)}")
        return None

    def wrong_kernel(self, message: str) -> CompileError:
        assert self.signature
        name, parameters = self.signature
        call = f"called as {name}({parameters})"
        if found := re.search(r'a value of type "void \(\*\)\((.*?)\)" cannot', message):
            return self.refusal(name, f"takes ({found[1]}), but it is {call}")
        if "has no" in message or "undefined" in message:
            return CompileError(f"{self.path} defines no kernel {name}: it is {call}")
        return self.refusal(name, f"is no kernel that can be {call}")

    def wrong_constant(self, name: str, message: str) -> CompileError:
        for function in self.functions:
            if name in map(function.at, function.numbers):
                return self.refusal(function.name, self.wrong_function(function, message))
        if "undefined" in message:
            return CompileError(f"{self.path} defines no {name}: the launch needs {_constant(name)}")
        return self.refusal(name, f"must be a constant whole number: {_constant(name)}")

    def wrong_function(self, function: Function, message: str) -> str:
        """What the compiler says of a function's value, in the learner's words."""
        code = Source(self.source).code
        if "arguments in function call" in message:
            what = "must take one number"
        elif "integral" in message:
            what = "must return a whole number"
        elif "function type" in message:
            what = "must be a function"
        elif not re.search(rf"\bconstexpr\b[^;{{}}]*\b{function.name}\b", code):
            what = "must be constexpr"
        else:
            return (
                "has no value when the file is compiled: it must come to an end, and use nothing but "
                f"{function.argument} and constants"
            )
        return f"{what}: {function.signature}"

    def unguarded(self, name: str) -> str:
        return f"{self.path} fixes {name}: to let it be varied, define it between #ifndef {name} and #endif"

    def refuse_assembly(self, log: str) -> None:
        """Raise the error of the second compile: ptxas's, for the first has passed."""
        if found := re.search(r"'(\S+)' uses too much shared data \((\w+) bytes, (\w+) max\)", log):
            used, most = int(found[2], 0), int(found[3], 0)
            what = (
                f"{_plain(found[1])} declares {used:,} bytes of __shared__ arrays; a block can have {most:,}"
            )
            if "SHARED_BYTES" in self.optional:
                what += ", more only as dynamic shared memory (extern __shared__), asked for by SHARED_BYTES"
            line = Source(self.source).line_of("__shared__")
            raise CompileError(f"{self.path}{f':{line}' if line else ''} {what}", "launch", line)
        if "--gpu-architecture" in log:
            raise CompileError(f"NVRTC {nvrtc.version()} cannot compile for this card ({self.arch})")
        raise CompileError(f"{self.path}: {errors.first_errors(log, self.path, self.source)}")


def _constant(name: str) -> str:
    """How it is defined."""
    return f"constexpr int {name} = ...;"


def _export(name: str, value: str) -> str:
    # "| 0" and the braces refuse what is no whole number, or not known before the launch.
    return f'extern "C" __device__ const long long {CONSTANT}{name}{{({value}) | 0}};\n'


def _take_exports(ptx: str) -> tuple[str, dict[str, str]]:
    """The PTX as it would be without the exports, and their values: a number or an entry's name."""
    values: dict[str, str] = {}

    def take(line: re.Match[str]) -> str:
        values[line[1]] = line[2] or "0"  # no initialiser is printed for zero
        return ""

    ptx = re.sub(
        r"^(?:\.visible )?\.global [^\n]*?\b(dojo_\w+)(?: = ([^\n;]+))?;\n", take, ptx, flags=re.MULTILINE
    )
    # The exported address made the compiler declare its kernel ahead.
    return re.sub(r"^[^\n]*\.entry [\w$]+\s*\([^{}()]*\)\s*;\n", "", ptx, flags=re.MULTILINE), values


def _resources(log: str, ptx: str) -> dict[str, Resources]:
    """Each kernel's resources, from the log of ptxas -v, where a called function has lines of its own."""
    kernels = {}
    for report in re.split(r"Compiling entry function ", log)[1:]:
        found = re.match(r"'(\S+)'", report)
        assert found, "ptxas -v names the entry in quotes"
        entry = found[1]

        def number(pattern: str, text: str = report) -> int:
            match = re.search(pattern, text)
            return int(match[1]) if match else 0

        frame = report.partition(f"Function properties for {entry}")[2]
        head = re.search(rf"\.entry {re.escape(entry)}\b([^{{]*)", ptx)
        threads = re.search(r"\.(?:maxntid|reqntid)\s+(\d+)(?:, (\d+))?(?:, (\d+))?", head[1] if head else "")
        kernels[entry] = Resources(
            registers=number(r"Used (\d+) registers"),
            spill_stores=number(r"(\d+) bytes spill stores", frame),
            spill_loads=number(r"(\d+) bytes spill loads", frame),
            stack=number(r"(\d+) bytes stack frame", frame),
            shared=number(r"(\d+) bytes smem"),
            max_threads=int(threads[1]) * int(threads[2] or 1) * int(threads[3] or 1) if threads else 0,
        )
    return kernels


def _plain(entry: str) -> str:
    """A mangled top-level name without its decoration: _Z4axpyPfi -> axpy."""
    found = re.match(r"_ZL?(\d+)", entry)
    return entry[found.end() : found.end() + int(found[1])] if found else entry


# -------------------------------------------------------------------------------------------------- the cache


def _to_json(compiled: Compiled) -> dict[str, object]:
    return asdict(compiled) | {"cubin": base64.b64encode(compiled.cubin).decode()}


def _from_json(stored: dict[str, object]) -> Compiled:
    values = dict(stored) | {"cubin": base64.b64decode(str(stored["cubin"]))}
    resources = values["resources"]
    assert isinstance(resources, dict)
    values["resources"] = {entry: Resources(**numbers) for entry, numbers in resources.items()}
    return Compiled(**values)  # type: ignore[arg-type]
