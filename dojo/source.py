"""What can be told from a kernel's source text: lines to quote, and the shapes of shared arrays.

A guess from text is used to word a finding only, never to grade. What cannot be told for sure is None.
"""

import ast
import operator
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

# Bytes. Of several words, such as `unsigned long long` or `short int`, one of SIZES decides, else of PLAIN.
SIZES = {"char": 1, "bool": 1, "short": 2, "half": 2, "__half": 2, "float": 4, "long": 8, "double": 8}
SIZES |= {f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
VECTORS = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4}
VECTORS |= {"longlong": 8, "ulonglong": 8, "double": 8}
SIZES |= {f"{kind}{n}": n * size for kind, size in VECTORS.items() for n in (1, 2, 3, 4)}
PLAIN = {"int": 4, "unsigned": 4, "signed": 4, "uint": 4}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SHARED = re.compile(r"__shared__([^;={]*)[;={]")  # one declaration, perhaps of several arrays
ARRAY = re.compile(r"(\w+)\s*((?:\[[^\[\]]*\]\s*)+)")
DEFINITION = re.compile(
    r"#\s*define\s+(\w+)\s+(.+)$|\bconst(?:expr)?\s[\w\s]*?(\w+)\s*=\s*([^;]+);", re.MULTILINE
)

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # C's, for the positive sizes of arrays
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def _size(declaration: str) -> int:
    """Bytes of an element, 0 if that is not known: of a structure, of a pointer."""
    outside = re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", declaration)  # of __align__(16) and of the extents
    if "*" in outside:
        return 0
    words = re.findall(r"\w+", outside)
    return next((sizes[word] for sizes in (SIZES, PLAIN) for word in words if word in sizes), 0)


class Source:
    """The text of one .cu file. `constants` are values that the compiler has told us."""

    def __init__(self, text: str, constants: Mapping[str, int] | None = None) -> None:
        self.lines = text.split("\n")  # as the compiler counts: splitlines() would also cut at a form feed
        self.code = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)  # line for line
        self.constants = constants or {}

    def quotes(self, numbers: Iterable[int]) -> list[str]:
        """Lines as the card shows them, "31 |     Pvalue += a * b;": no comments, four columns of indent."""
        there = [number for number in dict.fromkeys(numbers) if 0 < number <= len(self.lines)]
        code = [self.lines[number - 1].expandtabs(4).split("//")[0].rstrip() for number in there]
        code = ["".join(c if c.isprintable() else " " for c in line) for line in code]
        texts = textwrap.dedent("\n".join(code)).split("\n")
        return [f"{number} |     {text}" for number, text in zip(there, texts, strict=False) if text]

    def line_of(self, name: str) -> int:
        """The first line of code that has this word, 0 if none has."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        return next((n for n, line in enumerate(self.code.split("\n"), 1) if word.search(line)), 0)

    def element(self, name: str, offset: int) -> str:
        """("Nds", byte 384) -> "Nds[6][0]", or "Nds, element 96", or "Nds, byte 384", as much as is known.

        A variable that is no array is just named.
        """
        if name in self.shared_scalars:
            return name
        size, shape = self.shared_arrays.get(name, (0, None))
        if not size:
            return f"{name}, byte {offset}"
        index = offset // size
        if shape is None:
            return f"{name}, element {index}"
        subscripts = []
        for extent in reversed(shape[1:]):
            index, last = divmod(index, extent)
            subscripts.append(last)
        return name + "".join(f"[{i}]" for i in (index, *reversed(subscripts)))

    def parameters(self, kernel: str) -> list[str]:
        """The names of a function's parameters in order, as far as they can be told."""
        found = re.search(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)\s*\{{", self.code)
        names = []
        for parameter in found[1].split(",") if found else ():
            name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)?(?:=.*)?$", parameter.strip(), re.DOTALL)
            if not name:
                break
            names.append(name[1])
        return names

    @cached_property
    def shared_arrays(self) -> dict[str, tuple[int, list[int] | None]]:
        """Bytes of one element, and extents (the first may be 0, for `extern`), by the array's name."""
        arrays: dict[str, tuple[int, list[int] | None]] = {}
        for declaration in SHARED.findall(self.code):
            size = _size(declaration)
            for name, subscripts in ARRAY.findall(declaration):
                _first, *rest = re.findall(r"\[([^\[\]]*)\]", subscripts)
                extents = [self.value(text) for text in rest]
                shape = [0, *(extent for extent in extents if extent)]
                known = all(extents) and arrays.get(name, (size, shape)) == (size, shape)
                arrays[name] = size, shape if known else None
        return arrays

    @cached_property
    def shared_scalars(self) -> set[str]:
        """Shared variables that are not arrays, by name."""
        declarations = [ARRAY.sub("", text) for text in SHARED.findall(self.code)]
        names = {name.split()[-1] for text in declarations for name in text.split(",") if name.split()}
        return {name.lstrip("*&") for name in names if name not in SIZES | PLAIN} - set(self.shared_arrays)

    def value(self, expression: str) -> int | None:
        """An integer constant expression of literals and named constants."""
        try:
            return self._evaluate(ast.parse(expression.strip(), mode="eval").body, depth=0)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
            return None

    def _evaluate(self, node: ast.expr, depth: int) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](
                self._evaluate(node.left, depth), self._evaluate(node.right, depth)
            )
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        if isinstance(node, ast.Name) and len(self.definitions.get(node.id, ())) == 1 and depth < 20:
            (text,) = self.definitions[node.id]
            return self._evaluate(ast.parse(text.strip(), mode="eval").body, depth + 1)
        raise ValueError("not a constant that text can tell")

    @cached_property
    def definitions(self) -> dict[str, set[str]]:
        """The expressions behind #define, const and constexpr, by name; several where a name has several."""
        definitions: dict[str, set[str]] = {}
        for macro, expansion, constant, value in DEFINITION.findall(self.code):
            definitions.setdefault(macro or constant, set()).add(expansion or value)
        return definitions
