"""Measured tables in the READMEs: rows are written between two marks, each README's own words stay."""

import re
from collections.abc import Sequence

FILES = ("README.md", "README.zh-CN.md")


def put(text: str, name: str, rows: Sequence[str], measured_on: str) -> str:
    """The text with these rows in the table `name`, and this in its caption's first parentheses.

    The table stands between <!-- name begins --> and <!-- name ends -->. Raises ValueError where it does not.
    """
    begin, end = f"<!-- {name} begins -->", f"<!-- {name} ends -->"
    table = rf"(.*{begin}\n[^(]*)\([^)]*\)([^|]*\|[^\n]*\n\|[-|:]+\|\n)(?:\|[^\n]*\n)*({end}.*)"
    found = re.fullmatch(table, text, re.DOTALL)
    if not found:
        raise ValueError(f"between {begin} and {end} there should be a caption (measured on) and a table")
    lines = "".join(f"{row}\n" for row in rows)
    return f"{found[1]}({measured_on}){found[2]}{lines}{found[3]}"
