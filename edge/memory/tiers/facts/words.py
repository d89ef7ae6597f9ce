"""Words that say what somebody does or lastingly is, for "I'm a …": written from general knowledge of English."""

from __future__ import annotations

from typing import Final

_OCCUPATIONS: Final = frozenset(
    """
    accountant actor actress actuary administrator advisor adviser agent aide ambassador analyst animator anaesthetist archaeologist
    architect archivist artist assistant astronaut astronomer athlete attendant attorney auctioneer auditor author baker banker
    barber barista barkeeper barman bartender beautician beekeeper biologist blacksmith boatman bookbinder bookkeeper bookseller
    botanist bricklayer broadcaster broker builder butcher butler cabinetmaker cameraman captain cardiologist caregiver caretaker
    carer carpenter cartographer cashier caterer chambermaid chauffeur chef chemist childminder chiropractor choreographer cleaner
    clerk climatologist coach cobbler coder colonel comedian composer conductor confectioner conservator constable consultant
    contractor cook copywriter coroner counsellor counselor courier craftsman critic croupier curator dancer decorator dentist
    dermatologist designer detective developer dietician dietitian diplomat director diver doctor doorman draughtsman dressmaker
    driver drummer dustman ecologist economist editor educator electrician engineer entertainer entrepreneur estimator examiner
    executive farmer farrier filmmaker firefighter fireman fisherman fishmonger florist forester freelancer gardener geographer
    geologist glazier goldsmith governess grocer groom guard guide guitarist gynaecologist hairdresser handyman headmaster
    headmistress herbalist historian housekeeper housewife hydrologist illustrator importer inspector instructor interpreter
    interviewer inventor investigator janitor jeweller jeweler jockey joiner journalist judge juggler labourer laborer landlord
    landscaper lawyer lecturer librarian lifeguard linguist locksmith logger machinist magician magistrate maid mailman major
    manager manicurist mason masseur masseuse mathematician mechanic merchant meteorologist microbiologist midwife miller miner
    minister model musician nanny neurologist novelist nun nurse nutritionist oboist obstetrician officer operator optician
    optometrist orchestrator orderly organist orthodontist packer paediatrician painter paramedic pastor pathologist pediatrician
    performer pharmacist philosopher photographer physician physicist physiotherapist pianist pilot plasterer playwright plumber
    poet policeman policewoman politician porter postman potter postwoman priest principal printer producer professor programmer
    psychiatrist psychologist psychotherapist publican publisher rabbi radiographer radiologist ranger realtor receptionist
    recruiter referee registrar reporter representative researcher restaurateur reviewer roofer sailor salesman salesperson
    saleswoman scholar scientist screenwriter sculptor seamstress secretary sergeant server shepherd shoemaker shopkeeper singer
    sociologist soldier solicitor sommelier specialist statistician steward stewardess stockbroker stonemason stylist
    superintendent supervisor surgeon surveyor surveillance tailor tanner teacher technician technologist telephonist teller
    therapist tiler toolmaker trader trainer translator trucker trumpeter tutor typesetter undertaker upholsterer urologist usher
    vet veterinarian vicar videographer violinist waiter waitress warden warehouseman watchmaker weaver webmaster welder
    winemaker woodcutter woodworker worker writer zookeeper zoologist
    """.split()  # noqa: SIM905 -- a list of words reads better as text
)
_MAKERS: Final = (
    "ologist",
    "ographer",
    "ician",
    "smith",
    "maker",
)  # endings that only occupations have, of longer words

# What else somebody is for long.
LASTING: Final = frozenset(
    """
    vegetarian vegan pescatarian mother father parent grandmother grandfather twin widow widower student pupil pensioner retiree
    christian muslim jew hindu buddhist catholic protestant atheist agnostic diabetic veteran smoker non-smoker teetotaller
    left-hander immigrant orphan volunteer apprentice trainee mum mom dad grandma grandpa
    """.split()  # noqa: SIM905
)


def is_occupation(word: str) -> bool:
    """Whether a word, in the singular and in lower case, says what somebody does for a living."""
    return word in _OCCUPATIONS or (len(word) > 7 and word.endswith(_MAKERS))
