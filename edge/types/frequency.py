"""How common English words are."""

from __future__ import annotations


def zipf(word: str) -> float:
    """The Zipf frequency of a word: log10 of its count in a billion words of English; 0.0: not known.

    Source: van Heuven et al. 2014, from `wordfreq`. "the" has 7.7, "table" 5.1, "screwdriver" 3.1.
    """
    from wordfreq import zipf_frequency  # takes a fifth of a second, and most commands never ask

    return float(zipf_frequency(word, "en"))
