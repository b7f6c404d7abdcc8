"""The arithmetic that the instruction table leans on: against values known by hand, and struct's rounding."""

from __future__ import annotations

import random
import struct
from fractions import Fraction
from math import inf, isnan, nan

import pytest
from exact import add, decode, div, encode, fma, mul, sqrt, to_integer

TINY = Fraction(1, 2**200)


def test_decode_and_encode_are_inverse():
    for type, bits in (("f16", 16), ("f32", 32), ("f64", 64)):
        for _ in range(300):
            pattern = random.Random(_).getrandbits(bits)
            value = decode(pattern, type)
            for mode in ("rn", "rz", "rm", "rp"):
                assert encode(value, type, mode) == (-1 if value != value else pattern)


def test_rounds_like_struct():
    """struct packs a float64 into a float32 or float16 with round to nearest even."""
    for seed in range(500):
        dice = random.Random(seed)
        value = dice.choice([-1, 1]) * dice.random() * 2.0 ** dice.randint(-152, 126)
        for type, code, size in (("f32", "<f", 4), ("f16", "<e", 2)):
            try:
                want = int.from_bytes(struct.pack(code, value), "little")
            except OverflowError:
                want = int.from_bytes(struct.pack(code, inf if value > 0 else -inf), "little")
            assert encode(Fraction(value), type) == want, (value, size)


@pytest.mark.parametrize(
    ("value", "mode", "want"),
    [
        (1 + Fraction(1, 2**24), "rn", 0x3F800000),  # a tie goes to even
        (1 + Fraction(3, 2**24), "rn", 0x3F800002),
        (1 + Fraction(1, 2**24) + TINY, "rn", 0x3F800001),
        (1 + TINY, "rp", 0x3F800001),
        (1 + TINY, "rz", 0x3F800000),
        (-1 - TINY, "rp", 0xBF800000),
        (-1 - TINY, "rm", 0xBF800001),
        (1 - TINY, "rz", 0x3F7FFFFF),
        (TINY, "rn", 0),
        (TINY, "rp", 1),
        (-TINY, "rn", 0x80000000),
        (-TINY, "rm", 0x80000001),
        (Fraction(1, 2**150), "rn", 0),
        (Fraction(3, 2**150), "rn", 2),
        (Fraction(2**128), "rn", 0x7F800000),
        (Fraction(2**128), "rz", 0x7F7FFFFF),
        (Fraction(2**128), "rm", 0x7F7FFFFF),
        (-Fraction(2**128), "rm", 0xFF800000),
        (Fraction(2**128 - 2**103), "rn", 0x7F800000),
        (Fraction(2**128 - 2**103) - TINY, "rn", 0x7F7FFFFF),
        (-0.0, "rn", 0x80000000),
        (-inf, "rz", 0xFF800000),
        (nan, "rn", -1),
    ],
)
def test_encode_f32(value, mode, want):
    assert encode(value, "f32", mode) == want


def test_flush_to_zero():
    assert decode(0x807FFFFF, "f32", ftz=True) == 0
    assert str(decode(0x807FFFFF, "f32", ftz=True)) == "-0.0"
    assert encode(-Fraction(1, 2**127), "f32", ftz=True) == 0x80000000
    assert encode(Fraction(1, 2**126), "f32", ftz=True) == 0x00800000
    assert encode(Fraction(2**30 - 1, 2**156), "f32", ftz=True) == 0  # it would round up to a normal number


def test_integers():
    assert decode(0x1FF, "s8") == -1
    assert decode(0x180, "u8") == 128
    assert decode(0x8000000000000000, "s64") == -(2**63)
    halves = [Fraction(n, 2) for n in (-5, -3, -1, 1, 3, 5)]
    assert [to_integer(x, "rni") for x in halves] == [-2, -2, 0, 0, 2, 2]
    assert [to_integer(x, "rzi") for x in halves] == [-2, -1, 0, 0, 1, 2]
    assert [to_integer(x, "rmi") for x in halves] == [-3, -2, -1, 0, 1, 2]
    assert [to_integer(x, "rpi") for x in halves] == [-2, -1, 0, 1, 2, 3]


def test_special_values():
    """Zeros, infinities and NaN, as IEEE 754 has them."""
    one = Fraction(1)
    assert isnan(add(inf, -inf))
    assert isnan(mul(0.0, inf))
    assert isnan(div(0.0, -0.0))
    assert isnan(div(inf, inf))
    assert isnan(sqrt(-one))
    assert isnan(fma(0.0, inf, one))
    assert str(add(one, -one)) == "0.0"
    assert str(add(one, -one, "rm")) == "-0.0"
    assert str(add(-0.0, -0.0)) == "-0.0"
    assert str(add(0.0, -0.0, "rm")) == "-0.0"
    assert str(mul(-one, 0.0)) == "-0.0"
    assert str(sqrt(-0.0)) == "-0.0"
    assert str(div(one, -inf)) == "-0.0"
    assert div(-one, 0.0) == -inf
    assert div(one, -0.0) == -inf
    assert add(one, -inf) == -inf
    assert add(one, -0.0) == one


def test_square_root():
    assert sqrt(Fraction(9, 4)) == Fraction(3, 2)
    two = sqrt(Fraction(2))
    assert abs(two * two - 2) < TINY
    assert encode(two, "f64") == 0x3FF6A09E667F3BCD
    assert encode(two, "f32", "rm") == 0x3FB504F3
    assert encode(two, "f32", "rp") == 0x3FB504F4
