"""How transcripts are made comparable before words are counted: the same for the reference and for what was heard.

1. Lower case; typographic apostrophes become plain ones, then all apostrophes go ("nasa's" → "nasas").
2. Titles are spelled out: mr → mister, mrs → missus, dr → doctor, st → saint; "&" → and, "%" → percent.
3. A Roman numeral after "chapter" becomes a digit (chapter i → chapter 1).
4. Letters and digits that touch are parted (f2 → f 2); a hyphen is a space.
5. Numbers up to 999,999 are spelled out in words without "and" (21 → twenty one, 1998 → one thousand nine hundred …).
6. All other punctuation goes. Nothing is mended: "clean rooms" for "cleanrooms" is two errors.
"""

from __future__ import annotations

import re

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TITLES = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint"}
_NUMERALS = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_ROMAN = {numeral: str(value) for value, numeral in enumerate(_NUMERALS) if value}


def normalise(text: str) -> str:
    """Words in one form, parted by single spaces."""
    text = re.sub(r"['’‘`]", "", text.lower()).replace("&", " and ").replace("%", " percent ")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])", " ", text)
    words = re.sub(r"[^a-z0-9]+", " ", text).split()
    words = [_TITLES.get(word, word) for word in words]
    words = [_ROMAN.get(word, word) if at and words[at - 1] == "chapter" else word for at, word in enumerate(words)]
    return " ".join(spell(int(word)) if word.isdigit() and len(word) <= 6 else word for word in words)


def spell(number: int) -> str:
    """A number from 0 to 999,999 in words."""
    if number < 20:
        return _ONES[number]
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {spell(number % size)}" if number % size else ""
            return f"{spell(number // size)} {name}{rest}"
    return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
