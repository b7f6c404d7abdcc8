"""PTX text -> a frozen `Kernel`: instructions, registers, variables, parameters, source lines.

Nothing here knows what an instruction does; nothing after here sees text.
The grammar is the part of the PTX ISA that NVRTC writes, plus what inline assembly adds to it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

BYTES = {
    "pred": 1,
    "b8": 1,
    "u8": 1,
    "s8": 1,
    "b16": 2,
    "u16": 2,
    "s16": 2,
    "f16": 2,
    "b32": 4,
    "u32": 4,
    "s32": 4,
    "f32": 4,
    "f16x2": 4,
    "b64": 8,
    "u64": 8,
    "s64": 8,
    "f64": 8,
}


class Unsupported(Exception):
    """The simulator lacks something. `instruction` names it, `line` is its source line (0 if it has none)."""

    def __init__(self, instruction: str, line: int = 0, why: str = "") -> None:
        self.instruction, self.line, self.why = instruction, line, why
        place = f" on line {line}" if line else ""
        super().__init__(f"the simulator does not support {instruction}{place}{': ' + why if why else ''}")


class InvalidPTX(ValueError):
    """Text that is not PTX: str(e) says what and where."""


@dataclass(frozen=True, slots=True)
class Register:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A read-only register of the machine: `%tid.x`, `%laneid`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: `value` for an integer, `bits` and the type for `0f3F800000` and `0d...`."""

    value: int
    type: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, or a label: `Nds`, `Nds+64`, `$L__BB0_2`."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[%rd4+64]`, `[matmul_tiled_param_0]`, `[Nds+4]`."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """`{%f1, %f2}` (mark "{") or `%p1|%p2` (mark "|")."""

    items: tuple[Operand, ...]
    mark: str = "{"


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p1` as an operand."""

    register: Register


Operand = Register | Special | Immediate | Symbol | Address | Group | Negated | None  # None is the sink `_`


@dataclass(frozen=True, slots=True)
class Instruction:
    """`@!%p1 ld.global.v4.f32 {...}, [...]`: `opcode` is "ld.global.v4.f32", `parts` the same split at
    dots.
    """

    opcode: str
    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: tuple[Register, bool] | None  # (predicate, True if the instruction runs where it is false)
    line: int
    caller: int = 0  # the line of the call that `line` was inlined at, 0 outside of functions


@dataclass(frozen=True, slots=True)
class Variable:
    """A `.shared`, `.local`, `.global` or `.const` array; `size` and `align` in bytes. Size 0: extern
    shared memory.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes | None = None
    has_address: bool = False  # in its initial value, which is not known then


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str
    size: int


@dataclass(frozen=True)
class Kernel:
    """One `.entry` and the variables that it names.

    `labels` maps a label to the index of the instruction after it, `branch_targets` a table to its labels.
    An instruction that the compiler gives no line has line 0: `program` finds one.
    """

    name: str
    parameters: tuple[Parameter, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    branch_targets: Mapping[str, tuple[str, ...]]
    registers: tuple[Register, ...]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    max_threads: int = 0  # of a block, by __launch_bounds__; 0 without them
    rolled: frozenset[int] = frozenset()  # the instructions, by their index, behind a .pragma "nounroll"


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LINE_DIRECTIVE = re.compile(r"\.(?:loc|file)\b[^\n]*")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', re.M)
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:\s*,\s*function_name[^,\n]*,\s*inlined_at\s+(\d+)\s+(\d+))?"
)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
_FUNCTION = re.compile(r"\.func\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
_CALL = re.compile(r"(?:\(([^)]*)\)\s*,)?\s*([\w$%]+)\s*(?:,\s*\(([^)]*)\))?\s*(,.*)?$", re.S)
SYSTEM_CALLS = ("vprintf", "__assertfail")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)(?:\s+\.ptr[^,]*?)?\s+([\w$]+)(?:\[(\d+)\])?\s*$"
)
_VARIABLE = re.compile(
    r"\.(shared|local|global|const)\s+(?:\.align\s+(\d+)\s+)?(?:\.attribute\([^)]*\)\s*)?\.(\w+)\s+([\w$]+)"
    r"((?:\[\d*\])*)\s*(?:=\s*(.*))?$",
    re.S,
)
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.S)
_SPECIAL = re.compile(
    r"%(?:n?tid|n?ctaid)\.[xyz]$|%(?:laneid|warpid|nwarpid|lanemask_\w\w)$|"
    r"%(?:clock|globaltimer|smid|nsmid|gridid|pm\d|envreg|cluster|dynamic_smem|total_smem)"
)
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")


def parse(ptx: str, kernel: str) -> Kernel:
    """The kernel named `kernel` of a PTX module.

    Raises `KeyError` if the module has no such entry, `Unsupported` for what the grammar lacks and
    `ValueError` for text that is not PTX.
    """
    text = _COMMENT.sub(lambda match: " " if match[0].startswith("/*") else "", ptx)
    files = {int(number): name for number, name in _FILE.findall(ptx)}
    learner = min((n for n, name in files.items() if name.endswith(".cu")), default=min(files, default=1))
    entries = {match[1]: match for match in _ENTRY.finditer(text)}
    if kernel not in entries:
        raise KeyError(f"no kernel {kernel} in this PTX; it has {', '.join(sorted(entries)) or 'none'}")
    match = entries[kernel]
    parameters = tuple(_parameter(item) for item in (match[2] or "").split(",") if item.strip())
    functions = {match[2]: _Function(match, text) for match in _FUNCTION.finditer(text)}
    body = _Body(learner, functions, {parameter.name for parameter in parameters})
    for variable in _module_variables(text):
        body.variables[variable.name] = variable
    try:
        body.read(text, match.end())
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, InvalidPTX):
            raise
        raise InvalidPTX(f"this is not PTX, on line {body.line} of the source: {error}") from None
    named = {name for i in body.instructions for operand in i.operands for name in symbols(operand)}
    bounds = re.search(r"\.maxntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", match[3])
    return Kernel(
        kernel,
        parameters,
        tuple(body.instructions),
        body.labels,
        body.branch_targets,
        tuple(body.registers.values()),
        {name: variable for name, variable in body.variables.items() if name in named},
        math.prod(int(n) for n in bounds.groups("1")) if bounds else 0,
        frozenset(body.rolled),
    )


def symbols(operand: Operand) -> Iterator[str]:
    """The variables and labels that an operand names."""
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
        yield operand.base.name
    elif isinstance(operand, Group):
        for item in operand.items:
            yield from symbols(item)


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.search(text.strip())
    if not match:
        raise InvalidPTX(f"not a PTX parameter: {text.strip()}")
    return Parameter(match[2], match[1], BYTES[match[1]] * int(match[3] or 1))


def _module_variables(text: str) -> list[Variable]:
    """The variables declared outside any function."""
    outside, position, depth = [], 0, 0
    for brace in re.finditer(r"[{}]", text):
        inside_initialiser = (
            depth == 0 and brace[0] == "{" and text[position : brace.start()].rstrip().endswith("=")
        )
        if inside_initialiser or depth < 0:
            depth = -1 if brace[0] == "{" else 0  # an initialiser's braces belong to its statement
            continue
        if depth == 0:
            outside.append(text[position : brace.start()])
        depth += 1 if brace[0] == "{" else -1
        position = brace.end()
    outside.append(text[position:])
    statements = (s.strip() for chunk in outside for s in _LINE_DIRECTIVE.sub("", chunk).split(";"))
    found = []
    for statement in statements:
        start = re.search(r"\.(?:shared|global|const)\b", statement)
        if start and not statement.startswith(".entry"):
            found.append(_variable(statement[start.start() :]))
    return found


def _variable(text: str) -> Variable:
    match = _VARIABLE.match(text.strip())
    if not match or match[3] not in BYTES:
        raise Unsupported(f"the declaration `{' '.join(text.split())}`")
    space, align, kind, name, dimensions, initial = match.groups()
    size = BYTES[kind]
    for dimension in re.findall(r"\[(\d*)\]", dimensions):
        size *= int(dimension or 0)
    data = _initial_bytes(initial, kind, size) if initial else None
    return Variable(name, space, size, int(align or BYTES[kind]), data, bool(initial) and data is None)


def _initial_bytes(text: str, kind: str, size: int) -> bytes | None:
    """The bytes of `{1, 2, 3}` or `0f3F800000`; the zeros that PTX leaves off the end are put back. None if
    there is an address among them.
    """
    items = [item.strip() for item in text.replace("{", " ").replace("}", " ").split(",") if item.strip()]
    width = BYTES[kind]
    out = bytearray()
    for item in items:
        literal = _literal(item)
        if literal is None:
            return None
        out += (literal.value & (256**width - 1)).to_bytes(width, "little")
    return bytes(out).ljust(size, b"\0")


def _literal(text: str) -> Immediate | None:
    if _NUMBER.match(text):
        return Immediate(_integer(text.rstrip("U")))
    if text[:2].lower() == "0f":
        return Immediate(int(text[2:], 16), "f32")
    if text[:2].lower() == "0d":
        return Immediate(int(text[2:], 16), "f64")
    if re.match(r"-?\d+\.\d*(?:[eE][-+]?\d+)?$", text):
        return Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64")
    return None


def _integer(text: str) -> int:
    """As PTX writes them: 0x hexadecimal, 0b binary, a leading 0 octal."""
    digits = text.lstrip("-")
    value = int(digits, 8) if re.match(r"0\d", digits) else int(digits, 0)
    return -value if text.startswith("-") else value


class _Function:
    """A device function: its text, and the names of its result and of its parameters."""

    def __init__(self, match: re.Match[str], text: str) -> None:
        self.start, self.text = match.end(), text
        self.results = _parameter_names(match[1])
        self.parameters = _parameter_names(match[3])


def _parameter_names(text: str | None) -> list[str]:
    return [re.sub(r"\[\d*\]$", "", item.split()[-1]) for item in (text or "").split(",") if item.strip()]


class _Body:
    """Reads the statements between the braces of one kernel. Calls are read in place, as if inlined: each
    call gives the function's registers and labels names of its own.
    """

    def __init__(
        self, learner_file: int, functions: Mapping[str, _Function], kernel_parameters: set[str]
    ) -> None:
        self.learner_file, self.functions = learner_file, functions
        self.kernel_parameters = kernel_parameters
        self.calls: list[str] = []  # the functions being read
        self.prefix = ""  # of the names of the function being read
        self.aliases: dict[str, str] = {}  # its parameters -> those of the caller
        self.expanded = 0
        self.instructions: list[Instruction] = []
        self.rolled: set[int] = set()
        self.labels: dict[str, int] = {}
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self.registers: dict[str, Register] = {}
        self.variables: dict[str, Variable] = {}
        self.scopes: list[dict[str, Register]] = [{}]  # inner scopes may use a name again
        self.ranges: dict[str, tuple[int, str]] = {}  # %f<63> -> ("%f": (63, "f32"))
        self.line = 0
        self.caller = self.called_at = 0  # the latter: of the call that is being read

    def read(self, text: str, position: int) -> None:
        depth, end = 1, len(text)
        pending_label = ""
        while depth:
            while position < end and text[position].isspace():
                position += 1
            if position >= end:
                raise InvalidPTX("the PTX ends inside a kernel")
            character = text[position]
            if character in "{}":
                depth += 1 if character == "{" else -1
                if character == "{":
                    self.scopes.append({})
                else:
                    self.scopes.pop()
                position += 1
                continue
            if match := _LINE_DIRECTIVE.match(text, position):
                self.location(match[0])
                position = match.end()
                continue
            if match := _LABEL.match(text, position):
                pending_label = self.prefix + match[1]
                self.labels[pending_label] = len(self.instructions)
                position = match.end()
                continue
            stop = text.find(";", position)
            if stop < 0:
                raise InvalidPTX("a PTX statement has no end")
            self.statement(text[position:stop].strip(), pending_label)
            position = stop + 1

    def location(self, text: str) -> None:
        """`.loc file line column, function_name f, inlined_at file line`: the innermost line in the
        learner's file. The callers further out cannot be told for sure: of a loop's copies only the first
        has them, and the next `.loc` with the line that is named need not be the one that is meant.
        """
        if match := _LOC.match(text):
            file, line, outer_file, outer_line = match.groups()
            called = outer_file and int(outer_file) == self.learner_file
            if int(file) == self.learner_file:
                self.line = int(line)
                self.caller = int(outer_line) if called else self.called_at
            elif called:
                self.line, self.caller = int(outer_line), self.called_at

    def statement(self, text: str, label: str) -> None:
        if not text or text.startswith(".pragma"):
            if "nounroll" in text:
                self.rolled.add(len(self.instructions))
            return
        if text.startswith(".reg"):
            self.declare(text)
        elif text.startswith(".branchtargets"):
            targets = text[len(".branchtargets") :].split(",")
            self.branch_targets[label] = tuple(self.prefix + target.strip() for target in targets)
        elif text.startswith((".shared", ".local", ".global", ".const")):
            variable = _variable(text)
            self.variables[variable.name] = variable
        elif text.startswith(".param"):  # what a call passes stands in registers named after it
            for name in _parameter_names(text):
                self.aliases[name] = f"{self.prefix}{name}@{len(self.instructions)}"
        elif text.startswith(".callprototype"):
            pass
        elif text.startswith("."):
            raise Unsupported(text.split()[0], self.line)
        elif re.match(r"(?:@!?\S+\s+)?call\b", text):
            self.call(text)
        else:
            self.instructions += self.passing(self.instruction(text))

    def call(self, text: str) -> None:
        """`call.uni (retval0), f, (param0, param1)`: the function's instructions, here."""
        match = _CALL.match(re.sub(r"^call[\w.]*\s*", "", text))
        name = match[2] if match else text
        function = self.functions.get(name)
        results = (
            [self.alias(item.strip()) for item in (match[1] or "").split(",")] if match and match[1] else []
        )
        given = (
            [self.alias(item.strip()) for item in (match[3] or "").split(",")] if match and match[3] else []
        )
        if name in SYSTEM_CALLS:
            wide = [
                self.passed(item, 0, 4 if name == "__assertfail" and n == 2 else 8)
                for n, item in enumerate(given)
            ]
            to = self.passed(results[0], 0, 4) if results else None
            self.instructions.append(Instruction(name, (name,), (to, *wide), None, self.line))
            return
        if function is None or text.startswith("@") or name in self.calls:
            # recursion, a pointer to a function, or one that is not there: refused when it is reached
            self.instructions.append(Instruction("call", ("call",), (Symbol(name),), None, self.line))
            return
        self.expanded += 1
        outer = self.prefix, self.aliases, self.scopes, self.ranges, self.line, self.caller, self.called_at
        self.caller = self.called_at = self.line
        self.prefix = f"{name}#{self.expanded}:"
        self.aliases = dict(zip([*function.results, *function.parameters], [*results, *given], strict=False))
        self.scopes, self.ranges = [{}], {}
        self.calls.append(name)
        first = len(self.instructions)
        self.read(function.text, function.start)
        end = f"{self.prefix}end"
        for n in range(first, len(self.instructions)):
            i = self.instructions[n]
            if i.opcode == "ret":
                self.instructions[n] = Instruction("bra.uni", ("bra", "uni"), (Symbol(end),), i.guard, i.line)
        self.labels[end] = len(self.instructions)
        self.calls.pop()
        self.prefix, self.aliases, self.scopes, self.ranges, self.line, self.caller, self.called_at = outer

    def alias(self, name: str) -> str:
        return self.aliases.get(name, self.prefix + name)

    def passed(self, name: str, offset: int, size: int) -> Register:
        """The register that holds `size` bytes at `offset` of what a call passes."""
        name = f"{name}+{offset}"
        return self.registers.setdefault(name, Register(name, f"b{8 * size}"))

    def passing(self, i: Instruction) -> list[Instruction]:
        """ld.param and st.param of a call as moves between registers; other instructions as they are."""
        if i.parts[0] not in ("ld", "st") or "param" not in i.parts:
            return [i]
        address, value = i.operands if i.parts[0] == "st" else i.operands[::-1]
        assert isinstance(address, Address)
        if not isinstance(address.base, Symbol) or (
            not self.prefix and i.parts[0] == "ld" and address.base.name in self.kernel_parameters
        ):
            return [i]
        kind = i.parts[-1]
        moves = []
        for n, item in enumerate(value.items if isinstance(value, Group) else (value,)):
            slot = self.passed(self.alias(address.base.name), address.offset + n * BYTES[kind], BYTES[kind])
            operands = (slot, item) if i.parts[0] == "st" else (item, slot)
            moves.append(Instruction(f"mov.{kind}", ("mov", kind), operands, i.guard, i.line))
        return moves

    def declare(self, text: str) -> None:
        match = _REGISTER.match(text)
        if not match or match[1] not in BYTES:
            raise Unsupported(f"the declaration `{text}`", self.line)
        kind = match[1]
        for name in match[2].split(","):
            name = name.strip()
            if counted := re.match(r"(.+)<(\d+)>$", name):
                self.ranges[counted[1]] = (int(counted[2]), kind)
            else:
                unique = self.prefix + name
                unique = unique if unique not in self.registers else f"{unique}~{len(self.registers)}"
                self.registers[unique] = self.scopes[-1][name] = Register(unique, kind)

    def instruction(self, text: str) -> Instruction:
        guard = None
        if text.startswith("@"):
            condition, _, text = text[1:].partition(" ") if " " in text else (text[1:], "", "")
            negated = condition.startswith("!")
            guard = (self.register(condition.lstrip("!").strip()), negated)
            text = text.strip()
        opcode, _, rest = " ".join(text.split()).partition(" ")
        operands = tuple(self.operand(item) for item in _split(rest))
        return Instruction(opcode, tuple(opcode.split(".")), operands, guard, self.line, self.caller)

    def operand(self, text: str) -> Operand:
        if text == "_":
            return None
        if text.startswith("{"):
            return Group(tuple(self.operand(item) for item in _split(text[1:-1])))
        if text.startswith("["):
            return self.address(text[1:-1].strip())
        if "|" in text:
            return Group(tuple(self.operand(item.strip()) for item in text.split("|")), "|")
        if text.startswith("!"):
            return Negated(self.register(text[1:].strip()))
        if text.endswith("WARP_SZ"):
            return Immediate(32)
        if _SPECIAL.match(text):
            return Special(text)
        if (literal := _literal(text)) is not None:
            return literal
        if found := self.lookup(text):
            return found
        if text.startswith("%"):
            raise InvalidPTX(f"unknown register {text}")
        name, plus, offset = text.partition("+")
        if self.prefix and name.startswith("$L"):
            name = self.prefix + name
        return Symbol(name.strip(), _integer(offset) if plus else 0)

    def address(self, text: str) -> Address:
        match = re.match(r"(.*?)\s*([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+))$", text)
        base, offset = (match[1], _integer(match[3]) * (-1 if match[2] == "-" else 1)) if match else (text, 0)
        if _NUMBER.match(base):
            return Address(None, _integer(base) + offset)
        return Address(self.lookup(base) or Symbol(base), offset)

    def lookup(self, name: str) -> Register | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        match = re.match(r"(.*?)(\d+)$", name)
        if match and match[1] in self.ranges and int(match[2]) < self.ranges[match[1]][0]:
            unique = self.prefix + name
            return self.registers.setdefault(unique, Register(unique, self.ranges[match[1]][1]))
        return None

    def register(self, name: str) -> Register:
        found = self.lookup(name)
        if found is None:
            raise InvalidPTX(f"unknown register {name}")
        return found


def _split(text: str) -> list[str]:
    """Splits operands at the commas outside braces and brackets."""
    items, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*items, last] if last else items
