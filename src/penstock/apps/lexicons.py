"""Weighted words that texts are scored against."""

from __future__ import annotations


def _weights(**words_by_weight: str) -> dict[str, float]:
    """`_weights(w2="flood", w1="rain water")`: each word with its weight."""
    return {word: float(name[1:]) for name, words in words_by_weight.items() for word in words.split()}


TOPICS = {
    "casualties": _weights(
        w2="killed dead death casualty casualties injured wounded victim missing toll погибших пострадавших раненых",
        w1="hospital survivor family dozens body lost",
    ),
    "damage": _weights(
        w2="destroyed damaged damage collapsed ruins devastated devastation rubble wreckage разрушены",
        w1="bridge building road power home school plant explosion blast fire storm метеорит взрыв",
    ),
    "donations": _weights(
        w2="donate donation relief fundraiser redcross aid charity volunteer",
        w1="help give blood food shelter fund money raise needed support",
    ),
    "sympathy": _weights(
        w2="pray praying prayer prayers condolence heart thoughts sad sorry rip молимся",
        w1="love strong hope stay together tragedy sympathy feel",
    ),
    "caution": _weights(
        w2="warning alert evacuate evacuation danger avoid safe safety emergency",
        w1="stay indoors careful prepared watch advice signal",
    ),
    "inquiry": _weights(
        w2="suspect investigation investigators police fbi cause arrested confirm",
        w1="official officials report source sources search video photo map news",
    ),
}

URGENCY = _weights(
    w2="breaking urgent emergency evacuate alert warning killed explosion срочно",
    w1="now live dead injured missing police confirm confirmed blast danger update",
)

FORMAL = _weights(
    w2="breaking official officials reuters bbc cnn ap update confirms reports сообщает",
    w1="police killed injured toll video photos news live people according says say map via sources",
)

PERSONAL = _weights(
    w2="i my me i'm im i'll feel prayers praying pray omg lol",
    w1="we our you love hope so sad heart please guys everyone thoughts god you're wow",
)

_POSITIVE = _weights(
    w1="""good great brave love hope strong safe help support hero heroes thank thanks blessed bless peace proud happy
    together kind restored saved best amazing beautiful спасибо хорошо"""
)
_NEGATIVE = _weights(
    w1="""sad awful terrible bad sick horrible scary tragic tragedy devastating killed dead death hate angry evil fear
    lost missing worst destroyed injured cry crying hell wrong ужас страшно"""
)
POLARITY = _POSITIVE | {word: -weight for word, weight in _NEGATIVE.items()}

NEGATIONS = frozenset(("not", "no", "never", "without", "can't", "don't", "isn't", "won't", "не", "нет"))

SOURCE_KINDS = {  # label of the source → kind of author, credibility
    "Government": ("official", 1.0),
    "NGOs": ("official", 0.9),
    "Media": ("press", 0.8),
    "Eyewitness": ("witness", 0.7),
    "Business": ("business", 0.5),
    "Outsiders": ("private", 0.3),
}
