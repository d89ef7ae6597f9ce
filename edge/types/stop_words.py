"""Words of English that say how a question is put and not what it is about. A general list, made by hand."""

from __future__ import annotations

_FUNCTION = """
a about above across after again against all almost along already also although always am among an and another
any anybody anyone anything anywhere are aren around as at away back be became because become been before behind
being below beside between both but by came can cannot could couldn d did didn do does doesn doing don done down
during each either else enough even ever every everybody everyone everything everywhere few for from further get
gets getting given go goes going gone got had hadn has hasn have haven having he her here hers herself him
himself his how however i if in inside instead into is isn it its itself just least less let like likely ll m
made make many may maybe me might mine more most much must my myself near neither never next no nobody none nor
not nothing now of off often on once one only onto or other others our ours ourselves out outside over own per
perhaps please quite rather re really s same several shall she should shouldn since so some somebody someone
something sometimes somewhere soon still such t than that the their theirs them themselves then there these they
this those though through to together too toward towards under until up upon us used usually ve very was wasn we
well were weren what whatever when whenever where wherever whether which while who whoever whom whose why will
with within without won would wouldn yes yet you your yours yourself
"""
# By these, memory is asked; they would find the talk about asking.
_ASKING = """
ago anybody call called discuss discussed earlier first former happen happened happening happens kind know last
lately latest mention mentioned most name named often people person previous previously recall recent recently
remember remind said say says show sort speak spoke talk talked talking tell thing things time times today told
tonight type yesterday
"""

FUNCTION_WORDS = frozenset(_FUNCTION.split())
ASKING_WORDS = frozenset(_ASKING.split())
