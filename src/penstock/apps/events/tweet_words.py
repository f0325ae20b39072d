"""Word lists that made tweets are put together from; the weights are those of the real ones."""

from __future__ import annotations

CRISES = ("river_flood", "harbour_fire", "valley_quake", "coast_typhoon")
PLACES = ("Boston", "Tacloban", "West", "Chelyabinsk", "Leyte", "Waco", "Cebu", "Samar", "Austin", "Manila")
THINGS = ("bridge", "hospital", "school", "power line", "road", "plant", "harbour", "water main", "nursing home")
OPENINGS = {"": 0.4, "RT @user: ": 0.5, "@user ": 0.1}

SOURCES = {
    "Outsiders": 57.0,
    "Media": 32.0,
    "NGOs": 3.2,
    "Government": 2.7,
    "Not applicable": 1.6,
    "Business": 1.5,
    "Eyewitness": 1.3,
}

_PRIVATE = {
    "Sympathy and support": 44.0,
    "Other Useful Information": 19.0,
    "Donations and volunteering": 12.0,
    "Affected individuals": 10.0,
    "Not applicable": 10.0,
    "Caution and advice": 3.0,
    "Infrastructure and utilities": 2.0,
}
_PUBLIC = {
    "Other Useful Information": 55.0,
    "Affected individuals": 26.0,
    "Donations and volunteering": 8.0,
    "Infrastructure and utilities": 6.0,
    "Caution and advice": 3.0,
    "Sympathy and support": 2.0,
}
TYPES_BY_SOURCE = {
    "Outsiders": _PRIVATE,
    "Eyewitness": _PRIVATE,
    "Media": _PUBLIC,
    "Government": _PUBLIC,
    "NGOs": {**_PUBLIC, "Donations and volunteering": 70.0},
    "Business": _PUBLIC,
}

TEXTS = {
    "Sympathy and support": (
        "so sad for {place}, my heart goes out to everyone there",
        "Praying for all the families in {place} tonight",
        "we are with you {place}, stay strong &amp; keep hope",
        "I can't believe the awful news from {place}... no words",
        "thoughts and prayers for {place}, I love this brave town",
        "this is terrible, I feel sick. pray for {place}",
    ),
    "Other Useful Information": (
        "BREAKING: police confirm a second blast near the {thing} in {place}",
        "What we know so far about {place}, in maps and photos",
        "Officials in {place} to hold a news conference at {number} Main Street",
        "Live video: crews work around the {thing} in {place}",
        "Timeline of the events in {place} by our reporters",
        "Investigators search the {thing} in {place}, sources say",
    ),
    "Affected individuals": (
        "At least {number} people killed in {place}, officials say",
        "{number} injured taken to hospital in {place}",
        "Death toll rises to {number} in {place}, dozens missing",
        "Survivors of {place} tell how they left the {thing}",
    ),
    "Donations and volunteering": (
        "Help the victims in {place}: donate to the relief fund",
        "Volunteers needed at the {thing} in {place}, bring water and food",
        "Red Cross sends aid and {number} volunteers to {place}",
        "How to give blood or money for {place}",
    ),
    "Caution and advice": (
        "Warning: evacuate the area around the {thing} in {place} now",
        "Stay indoors in {place}, the {thing} is not safe",
        "Emergency alert for {place}: avoid the {thing}",
    ),
    "Infrastructure and utilities": (
        "The {thing} in {place} is destroyed, power out for {number} homes",
        "{place}: {thing} closed, {number} buildings damaged",
        "Phone and power restored to {number} homes in {place}",
    ),
    "Not applicable": (
        "lol is anyone else awake in {place}",
        "I was in {place} last year and now this",
        "everyone I know is talking about {place}",
    ),
}

UNRELATED_TEXTS = (
    "follow me and I will follow back #music",
    "new jobs this week, see the list http://t.co/jobs",
    "selling one silver coin in fine condition",
    "my cat just sat on the keyboard again",
    "good morning, coffee first",
)
