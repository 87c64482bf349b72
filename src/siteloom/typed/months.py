"""Names of months that are read without a library, and what they leave open."""

# ruff: noqa: RUF001 - signs and letters that look like others are what is read here

from __future__ import annotations

from functools import lru_cache

# As they stand in dates. Croatian is here for what it contradicts: its `listopada`
# is October, the Polish one November, and so nobody can say what the word means.
_NAMES = """
    january february march april may june july august september october november december
    januar februar märz april mai juni juli august september oktober november dezember
    jänner feber maerz april mai juni juli august september oktober november dezember
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
    januari februari maart april mei juni juli augustus september oktober november december
    januari februari mars april maj juni juli augusti september oktober november december
    januar februar marts april maj juni juli august september oktober november december
    januar februar mars april mai juni juli august september oktober november desember
    stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
    ledna února března dubna května června července srpna září října listopadu prosince
    leden únor březen duben květen červen červenec srpen září říjen listopad prosinec
    siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga prosinca
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
"""


@lru_cache(maxsize=1)
def _months_by_name() -> dict[str, set[int]]:
    """The months that a name or its first three or more letters may mean."""
    names: dict[str, set[int]] = {}
    for line in _NAMES.strip().splitlines():
        for month, name in enumerate(line.split(), start=1):
            for length in range(min(3, len(name)), len(name) + 1):
                names.setdefault(name[:length], set()).add(month)
    return names


def months_called(word: str) -> set[int]:
    """The months that a word in lower case may mean: none, one, or several where languages contradict."""
    return _months_by_name().get(word, set())
