"""Makes edge/identity/given_names.txt: given names in Latin letters from two lists that may be passed on.

It needs the packages `names` (its files are those of the 1990 census of the United States) and `faker`, which nothing
else here does: `pip install names==0.3.0 faker==40.63.0`, then `python -m tools.given_names`.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "edge" / "identity" / "given_names.txt"
LATIN_END = 0x250  # the blocks up to Latin Extended-B

HEADER = """\
# Given names in Latin letters, lower case: made by `python -m tools.given_names`.
# From the 1990 census of the United States (public domain; as packed in names {names}, MIT) and Faker {faker}:
#
# Copyright (c) 2012 Daniele Faraglia
#
# Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
# documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
# rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
# permit persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright
# notice and this permission notice shall be included in all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
# WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS
# OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
# OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def census_names() -> Iterator[str]:
    """The given names of the census."""
    for part in ("male", "female"):
        for line in (files("names") / f"dist.{part}.first").read_text(encoding="ascii").splitlines():
            yield line.split()[0].lower()


def faker_names() -> Iterator[str]:
    """The given names of all of Faker's countries that are in Latin letters."""
    people = importlib.import_module("faker.providers.person")
    for module in pkgutil.iter_modules(people.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for parent in provider.__mro__:
            for attribute, value in vars(parent).items():
                if ("first_name" in attribute or attribute == "given_names") and isinstance(
                    value, (list, tuple, dict, set)
                ):
                    for name in value:
                        if isinstance(name, str) and name.isalpha() and all(ord(letter) < LATIN_END for letter in name):
                            yield name.lower()


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=TARGET, help="where to write it")
    target = parser.parse_args().to
    found = sorted({*census_names(), *faker_names()})
    header = HEADER.format(names=version("names"), faker=version("faker"))
    target.write_text(header + "\n".join(found) + "\n", encoding="utf-8")
    print(f"{len(found)} names in {target}")


if __name__ == "__main__":
    main()
