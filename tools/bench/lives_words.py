"""How people say things of themselves, for `tools.bench.lives`: sentences of scripted lives, written apart from any rule.

Each kind of statement has two sets of templates: `DEV`, which may be looked at while rules are written, and `HELD`, which is only
scored. `{x}` is the value, `{old}` the one before it. The asides say nothing of the speaker that is so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Templates = Mapping[str, tuple[str, ...]]

DEV: Final[Templates] = {
    "work": (
        "I work at {x}.",
        "I work for {x}, you know.",
        "I'm working at {x} at the moment.",
        "Well, I have a job at {x}.",
        "I've been working for {x} since last spring.",
        "Oh, I started at {x} on Monday.",
    ),
    "work_new": (
        "I left {old} and now I work at {x}.",
        "I've got a new job at {x}.",
        "Guess what, I started working at {x} this week.",
        "I don't work at {old} anymore, I'm at {x} now.",
        "I just changed jobs, I work for {x} now.",
    ),
    "job": (
        "I'm {a} {x}.",
        "I am {a} {x} by profession.",
        "I work as {a} {x}.",
        "I'm working as {a} {x}.",
        "I've been {a} {x} for ten years.",
    ),
    "job_new": (
        "I'm {a} {x} now.",
        "I've become {a} {x}.",
        "I retrained, I'm now {a} {x}.",
    ),
    "home": (
        "I live in {x}.",
        "We live in {x}, by the river.",
        "I've been living in {x} for years.",
        "I'm living in {x} right now.",
    ),
    "home_new": (
        "I moved to {x} last week.",
        "We've just moved from {old} to {x}.",
        "I don't live in {old} any more, I live in {x}.",
        "I'm living in {x} now.",
    ),
    "origin": (
        "I come from {x}.",
        "I'm originally from {x}.",
        "I grew up in {x}.",
    ),
    "likes": (
        "I love {x}.",
        "I really like {x}.",
        "I enjoy {x} a lot.",
        "I'm a big fan of {x}.",
        "You know I like {x}.",
    ),
    "likes_no_more": (
        "I don't like {x} anymore.",
        "I used to love {x}, but not anymore.",
        "I'm tired of {x}, I can't stand it now.",
    ),
    "dislikes": (
        "I hate {x}.",
        "I don't like {x}.",
        "I can't stand {x}.",
        "I really dislike {x}.",
    ),
    "allergy": (
        "I'm allergic to {x}.",
        "Careful, I am allergic to {x}.",
        "I have an allergy to {x}.",
    ),
    "sister": (
        "My sister is called {x}.",
        "My sister's name is {x}.",
        "This is my sister {x}.",
    ),
    "brother": (
        "My brother is called {x}.",
        "My brother's name is {x}.",
        "My brother {x} says hello.",
    ),
    "birthday": (
        "My birthday is on {x}.",
        "My birthday is {x}.",
        "I was born on {x}.",
    ),
    "favourite": (
        "My favourite colour is {x}.",
        "My favorite colour is {x}.",
    ),
    "name": (
        "My name is {x}.",
        "I'm {x}, nice to meet you.",
    ),
}

HELD: Final[Templates] = {
    "work": (
        "These days I work at {x}.",
        "I actually work for {x}.",
        "I'm employed at {x}.",
        "I'm with {x}, in the office there.",
        "I have been working at {x} for two years.",
        "My job is at {x}.",
    ),
    "work_new": (
        "I quit my job at {old}. I work at {x} now.",
        "I found a new job at {x}!",
        "Since Monday I've been working at {x}.",
        "I'm no longer at {old}, I work for {x}.",
        "I switched to {x} last month.",
    ),
    "job": (
        "You know, I'm {a} {x}.",
        "I'm actually {a} {x}.",
        "My job? I'm {a} {x}.",
        "I earn my living as {a} {x}.",
    ),
    "job_new": (
        "I'm not {a_old} {old} anymore, I'm {a} {x}.",
        "I finally became {a} {x}.",
        "From now on I work as {a} {x}.",
    ),
    "home": (
        "My flat is in {x}.",
        "I'm based in {x}.",
        "My family and I live in {x}.",
        "I still live in {x}.",
    ),
    "home_new": (
        "I've moved to {x}.",
        "We moved house, we live in {x} now.",
        "I moved away from {old}, I'm living in {x} these days.",
        "I recently moved to {x}.",
    ),
    "origin": (
        "I'm from {x}, originally.",
        "I was born in {x}.",
    ),
    "likes": (
        "I'm really into {x}.",
        "I absolutely love {x}.",
        "I'm fond of {x}.",
        "I like {x} very much.",
        "There's nothing I like more than {x}.",
    ),
    "likes_no_more": (
        "I no longer like {x}.",
        "I've gone off {x}.",
        "I stopped liking {x}.",
    ),
    "dislikes": (
        "I absolutely hate {x}.",
        "I'm not a fan of {x}.",
        "I don't really like {x}.",
        "I never liked {x}.",
    ),
    "allergy": (
        "Sorry, I'm allergic to {x}.",
        "I've been allergic to {x} since I was a child.",
        "I have a {x} allergy.",
    ),
    "sister": (
        "{x} is my sister.",
        "I have a sister called {x}.",
        "I've got a sister named {x}.",
    ),
    "brother": (
        "{x} is my brother.",
        "I have a brother, his name is {x}.",
        "I've got a brother called {x}.",
    ),
    "birthday": (
        "It's my birthday on {x}.",
        "I have my birthday on {x}.",
    ),
    "favourite": (
        "{x} is my favourite colour.",
        "The colour I like best is {x}.",
    ),
    "name": (
        "Hi, I am {x}.",
        "My name's {x}.",
    ),
}

# Said in between: questions, what others are, what is not so, what somebody may do. None is a fact about the speaker.
ASIDES: Final = (
    "Do you work at {work}?",
    "I wish I lived in {home}.",
    "If I worked at {work}, I would cycle.",
    "My neighbour works at {work}.",
    "He said, I live in {home}.",
    "She told me that she is {a} {job}.",
    "Maybe I will move to {home} one day.",
    "I don't work at {work}.",
    "I'm not {a} {job}.",
    "I would love {taste} right now.",
    "Did you know that I live next to a bakery?",
    "I like it.",
    "I love you.",
    "I like how you did that.",
    "I'm a bit late today.",
    "I'm a little tired.",
    "I'm at the door.",
    "I'm from the delivery service, here is your parcel.",
    "I live for the weekend.",
    "I work too much.",
    "I hate to say it, but it is raining.",
    "My uncle lived in {home}.",
    "When I was a child I wanted to be {a} {job}.",
    "Imagine I was {a} {job}.",
    "I nearly moved to {home}.",
    "They think I work at {work}.",
    "Is your sister called {person}?",
    "His sister is called {person}.",
    "I had a lovely time in {home}.",
    "I'm going to {home} tomorrow.",
    "You should work for {work}.",
    "I can work as long as you want.",
    "Could you pass me the salt?",
    "It looks like rain.",
    "I think we need milk.",
    "Where did I put my keys?",
    "Let me see that.",
    "Good morning!",
)

WORKPLACES: Final = (
    "the bakery", "the library", "the city hospital", "Siemens", "the post office", "a small law firm", "the airport",
    "the university", "the zoo", "Green Valley School", "the town hall", "a bookshop", "the museum", "Nordbank",
)  # fmt: skip
JOBS: Final = (
    "nurse", "teacher", "carpenter", "engineer", "lawyer", "bus driver", "gardener", "software developer", "baker",
    "electrician", "architect", "dentist", "translator", "plumber",
)  # fmt: skip
HOMES: Final = (
    "Bonn", "Lisbon", "Oslo", "Ghent", "Malmö", "Leeds", "Graz", "Turin", "Porto", "Basel", "Krakow", "New Orleans",
    "San Sebastian", "Aarhus",
)  # fmt: skip
TASTES: Final = (
    "jazz", "sushi", "hiking", "black coffee", "chess", "spinach", "gardening", "horror films", "swimming", "olives",
    "old films", "green tea", "football", "mushrooms", "playing the piano", "long train rides",
)  # fmt: skip
ALLERGENS: Final = ("nuts", "cats", "pollen", "strawberries", "milk", "penicillin")
RELATIVES: Final = ("Maria", "Lena", "Tomasz", "Eva", "Jonas", "Clara", "Peter", "Nina")
BIRTHDAYS: Final = ("the third of May", "June 12th", "the first of October", "March 30th")
COLOURS: Final = ("green", "blue", "dark red", "yellow")
