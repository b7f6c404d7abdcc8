"""Pictures of traffic, for the card: which sectors or banks the lanes of one warp touch, and figures by line.

Each is a list of lines of plain characters, at most 60 columns wide.
"""

from collections.abc import Sequence

from dojo.simulator import Access, Report

SECTOR = 32  # bytes
SHOWN, SPACE = 8, 44  # sectors of a picture, and columns for them


def sectors(access: Access) -> list[str]:
    """One warp's request with many sectors: which they are, how many lanes touch each, what is used of it."""
    lanes: dict[int, int] = {}  # by sector
    wanted: dict[int, set[int]] = {}  # the bytes of it that a lane asks for
    for address in access.worst:
        if address is not None:
            asked = range(address, address + access.bits // 8)
            for sector in {byte // SECTOR for byte in asked}:
                lanes[sector] = lanes.get(sector, 0) + 1
                wanted.setdefault(sector, set()).update(byte for byte in asked if byte // SECTOR == sector)
    if not lanes:
        return []
    touched = sorted(lanes)
    cells = {
        f"sector of {access.array}": [f"{sector:,}" for sector in touched],
        "lanes": [str(lanes[sector]) for sector in touched],
        "bytes used": [str(len(wanted[sector])) for sector in touched],
    }
    width = max(len(text) for row in cells.values() for text in row[:SHOWN]) + 2
    shown = min(len(touched), SHOWN, SPACE // width)
    more = "  ..." if shown < len(touched) else ""
    used, moved = sum(map(len, wanted.values())), SECTOR * len(touched)
    return [
        *(
            f"{name:<12}" + "".join(f"{text:>{width}}" for text in row[:shown]) + more
            for name, row in cells.items()
        ),
        f"one warp touches {len(touched)} sector{'s' * (len(touched) > 1)}, {moved:,} bytes; "
        f"it uses {'all' if used == moved else f'{used:,}'}",
    ]


def banks(access: Access) -> list[str]:
    """A picture of the access's worst request: how many words each bank must serve, and to which lanes.

    Lanes that ask for 64 or 128 bits are served a half or a quarter warp at a time: the worst of these.
    """
    group = 32 // max(access.bits // 32, 1)
    wanted = [words_by_bank(access, range(first, first + group)) for first in range(0, 32, group)]
    words = max(wanted, key=lambda words: max(map(len, words)))
    busiest = max(range(32), key=lambda bank: len(words[bank]))
    lanes = [str(lane) for lane in words[busiest].values()]
    if not lanes:
        return []
    row = "".join("." if not served else str(len(served)) if len(served) < 10 else "#" for served in words)
    some = ", ".join(lanes if len(lanes) <= 6 else [*lanes[:4], f"... {lanes[-1]}"])
    at_once = [f"each lane asks for {access.bits // 8} bytes: {group} lanes are served at a time"]
    return [
        "bank   0       8       16      24     31",
        f"words  {row}" + ("   (# is 10 or more)" if "#" in row else ""),
        f"bank {busiest} serves {len(lanes)} words in turn, to lanes {some}",
        *(at_once if group < 32 else ()),
    ]


def words_by_bank(access: Access, lanes: Sequence[int]) -> list[dict[int, int]]:
    """For each bank the distinct words that these lanes of the worst request want, with the first lane of
    each.
    """
    words: list[dict[int, int]] = [{} for _ in range(32)]
    for lane in lanes:
        address = access.worst[lane] if access.worst else None
        if address is not None:
            for word in range(address // 4, address // 4 + max(access.bits // 32, 1)):
                words[word % 32].setdefault(word, lane)
    return words


def by_line(accesses: Sequence[Access]) -> list[str]:
    """The figures of each source line, for each width of its accesses."""
    heads = f"{'line':<12}{'bytes a lane':>12}{'requests':>11}{'wavefronts':>12}{'conflicts':>12}"
    return [
        heads,
        *(
            f"{a.line:>4} {a.op:<7}{a.bits // 8:>12}{a.requests:>11,}{a.wavefronts:>12,}{a.conflicts:>12,}"
            for a in accesses
        ),
    ]


def joined(report: Report) -> list[str]:
    """Why an access may be wider than the source has it."""
    written = {(access.line, access.op, access.bits) for access in report.ptx_accesses}
    rows = [access for access in report.accesses if access.space == "shared" and access.op == "load"]
    wider = any((access.line, access.op, access.bits) not in written for access in rows)
    return ["the assembler joins neighbouring accesses of a thread"] if wider else []
