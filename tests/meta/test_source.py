"""What is told from source text, and what is not guessed."""

import pytest

from dojo.source import Source

TILED = """\
#define HALF (TILE / 2)
constexpr int TILE = 16;
extern "C" __global__ void kernel(float *p)
{
    const int row = TILE + 1;
    __shared__ float Mds[TILE][TILE], Nds[TILE][row];  // __shared__ float comment[2][2];
    __shared__ __align__(16) float4 vectors[2][HALF];
    extern __shared__ double dynamic[];
    __shared__ float unknown[2][sizeof(float)];
    __shared__ Pair pairs[4];
    __shared__ float total, halves[2];
    p[0] = Mds[0][0];   // why
\tp[1] = 2;
}
"""


@pytest.mark.parametrize(
    ("name", "offset", "element"),
    [
        ("Mds", 0, "Mds[0][0]"),
        ("Mds", 384, "Mds[6][0]"),
        ("Nds", 4 * (17 * 3 + 16), "Nds[3][16]"),
        ("vectors", 16 * 9 + 4, "vectors[1][1]"),
        ("dynamic", 24, "dynamic[3]"),
        ("unknown", 12, "unknown, element 3"),
        ("pairs", 12, "pairs, byte 12"),
        ("total", 0, "total"),
        ("halves", 4, "halves[1]"),
        ("comment", 12, "comment, byte 12"),
        ("nobody", 12, "nobody, byte 12"),
    ],
)
def test_an_element_of_a_shared_array_as_far_as_it_can_be_told(name, offset, element):
    assert Source(TILED).element(name, offset) == element


def test_what_the_compiler_says_goes_before_the_text():
    assert Source(TILED, {"TILE": 8, "row": 9}).element("Nds", 4 * 9) == "Nds[1][0]"


def test_two_declarations_of_one_name_are_not_told_apart():
    text = "__shared__ float a[2][4]; __shared__ float a[2][8];"
    assert Source(text).element("a", 16) == "a, element 4"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("TILE * (TILE + 1)", 272),
        ("TILE << 2", 64),
        ("HALF", 8),
        ("7 / 2", 3),
        ("sizeof(int)", None),
        ("TILE ? 1 : 2", None),
        ("1 / 0", None),
        ("", None),
        ("NOBODY", None),
    ],
)
def test_a_constant_expression(expression, value):
    assert Source(TILED).value(expression) == value


@pytest.mark.parametrize(
    ("declaration", "names"),
    [
        ("__global__ void f(const float *A, float *__restrict__ B, int n) {", ["A", "B", "n"]),
        ("__global__ void f(\n  float A[],  // in\n  float (B)[4], int n = 3)\n{", []),
        ("__global__ void f(float A[], unsigned int n = 3) {", ["A", "n"]),
        ("__global__ void f();\n__global__ void f() {", []),
        ("__global__ void g(int n) {", []),
    ],
)
def test_the_parameters_of_a_kernel(declaration, names):
    assert Source(declaration).parameters("f") == names


def test_constants_that_are_defined_by_themselves_end():
    assert Source("#define A B\n#define B A\n").value("A") is None


def test_a_quote_has_no_comment_and_little_indent():
    assert Source(TILED).quotes([12, 13, 12, 0, 99]) == ["12 |     p[0] = Mds[0][0];", "13 |     p[1] = 2;"]


@pytest.mark.parametrize(
    ("type", "size"),
    [
        ("unsigned short", 2),
        ("short unsigned int", 2),
        ("unsigned char", 1),
        ("signed char", 1),
        ("unsigned", 4),
        ("unsigned int", 4),
        ("long", 8),
        ("unsigned long", 8),
        ("unsigned long long int", 8),
        ("volatile std::uint16_t", 2),
        ("__align__(4 * 4) float", 4),
        ("float3", 12),
        ("ushort4", 8),
        ("ulonglong2", 16),
    ],
)
def test_the_size_of_a_type_of_several_words(type, size):
    assert Source(f"__shared__ {type} a[2][64];").element("a", 100 * size) == "a[1][36]"


def test_a_pointer_has_no_size_of_what_it_points_to():
    assert Source("__shared__ float *rows[4];").element("rows", 24) == "rows, byte 24"


@pytest.mark.parametrize("odd", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_where_the_compiler_ends_it(odd):
    assert Source(f"{odd}\n  one{odd}two;\n").quotes([2, 3]) == ["2 |     one two;"]


def test_line_ends_of_windows():
    assert Source("one;\r\n\r\n  two;\r\n").quotes([1, 2, 3, 4]) == ["1 |     one;", "3 |       two;"]


def test_the_line_of_a_word_is_not_in_a_comment():
    assert Source("// TILE\nint TILES;\nint TILE;").line_of("TILE") == 3
    assert Source("/* TILE\n   TILE */ int a;\nint TILE;").line_of("TILE") == 3
    assert Source("").line_of("TILE") == 0
