"""Sentences of five words, for the word count."""

from __future__ import annotations

from random import Random

from penstock.apps.app import Payload, PayloadOptions
from penstock.apps.events.draw import zipf_ranks

WORDS_PER_SENTENCE = 5
OWN_SKEW = 1.0  # of words in ordinary text
_COMMON_WORDS = """
    the of and to in water a river is that for stream it as was with be by on not he his but at are this have from or
    had an they which one you were her all she there would their we him been has when who will more no if out so said
    what up its about into than them can only other new some could time these two may then do first any my now such like
    our over man me even most made after also did many before must through back years where much your way well down
    should because each just those people how too little state good very make world still own see men work long get
    here between both life being under never day same another know while last might us great old year off come since
    against go came right used take three gate penstock turbine valley bridge storm
"""
VOCABULARY = tuple(_COMMON_WORDS.split())


def sentences(options: PayloadOptions) -> list[Payload]:
    """Five words each, drawn by Zipf's law from a vocabulary in order of frequency.

    >>> sentences(PayloadOptions(seed=1, count=2))
    [{'sentence': 'the some their of is'}, {'sentence': 'a his who the the'}]
    """
    skew = OWN_SKEW if options.skew is None else options.skew
    ranks = zipf_ranks(Random(options.seed), len(VOCABULARY), skew, WORDS_PER_SENTENCE * options.count)
    words = [VOCABULARY[rank] for rank in ranks]
    starts = range(0, len(words), WORDS_PER_SENTENCE)
    return [{"sentence": " ".join(words[start : start + WORDS_PER_SENTENCE])} for start in starts]
