"""Words in four languages for generated pages: prose with the statistics of prose, keywords, places."""

from __future__ import annotations

from random import Random

from msgspec import Struct


class Language(Struct, frozen=True):
    """The words of a language."""

    code: str
    frequent: list[str]  # words that every sentence has
    subjects: list[str]
    syllables: list[str]  # of which rare words are made
    keywords: list[str]
    places: list[str]
    buy: str
    more: str


ENGLISH = Language(
    "en",
    "the of and to in is that it was for on with as at by from this had not are but were one all we you".split(),
    "garden winter letter market engine bridge teacher harbour window station history evening question island".split(),
    "ba cor del est for gan hol ing jar kel lom mar nor ost pel quin ros sam tor und ver wil yor zen ash bri".split(),
    "cheap hotel booking casino bonus loan insurance credit discount online pills watches replica tickets".split(),
    "Boston Denver Dallas Austin Seattle Phoenix Chicago Detroit Memphis Atlanta Houston Orlando Portland".split(),
    "Add to cart",
    "Read more about it",
)
GERMAN = Language(
    "de",
    "der die das und in zu den von mit ist des ein eine auf für sich nicht dem auch als es an werden aus er".split(),
    "Garten Winter Brief Markt Maschine Brücke Lehrer Hafen Fenster Bahnhof Geschichte Abend Frage Insel".split(),
    "ba ger hof lich ung keit stein wald berg tal haus bach feld dorf heim burg see korn laub moos ried holz".split(),
    "günstig Hotel buchen Casino Bonus Kredit Versicherung Rabatt online Tabletten Uhren Tickets Angebot".split(),
    "München Leipzig Hamburg Dresden Bremen Rostock Erfurt Kassel Mannheim Augsburg Potsdam Koblenz Lübeck".split(),
    "In den Warenkorb",
    "Mehr darüber lesen",
)
RUSSIAN = Language(
    "ru",
    "и в не на что с по как это из за от так же для к но все он она было если мы вы или бы уже при".split(),
    "сад зима письмо рынок машина мост учитель порт окно вокзал история вечер вопрос остров берег лес".split(),
    "ба вер гол дом жар зем кол лен мор нос пол рук сол тор ход цар чер шум бор дал вал гор лис мыш".split(),
    "дешёвые отели бронирование казино бонус кредит страховка скидка онлайн таблетки часы билеты".split(),
    "Москва Казань Самара Пермь Омск Тверь Рязань Калуга Саратов Воронеж Псков Вологда Ярославль".split(),
    "В корзину",
    "Подробнее об этом",
)
SPANISH = Language(
    "es",
    "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o este".split(),
    "jardín invierno carta mercado motor puente maestro puerto ventana estación historia tarde pregunta isla".split(),
    "ba cal der est fan gol her isla jun lor mar nal ord pel que ron sol tar uve ver zar bra cri dro fle".split(),
    "barato hotel reserva casino bono crédito seguro descuento online pastillas relojes entradas oferta".split(),
    "Madrid Sevilla Valencia Bilbao Granada Toledo Murcia Burgos Oviedo Vigo Lugo Huelva Málaga Alicante".split(),
    "Añadir al carrito",
    "Leer más sobre esto",
)
LANGUAGES = (ENGLISH, GERMAN, RUSSIAN, SPANISH)
LEXICON_WORDS = 3000


def lexicon(language: Language, seed: int) -> list[str]:
    """Return the words of a site, the frequent ones first."""
    draw = Random(f"{language.code} {seed}")
    rare = ["".join(draw.choices(language.syllables, k=draw.randint(2, 4))) for _ in range(LEXICON_WORDS)]
    return [*language.frequent, *draw.sample(language.subjects, len(language.subjects)), *rare]


def prose(words: list[str], count: int, draw: Random) -> str:
    """Return sentences. The n-th word of a lexicon is used about as often as the n-th word of a language: 1/n."""
    sentences: list[str] = []
    left = count
    while left > 0:
        length = min(left, draw.randint(6, 18))
        chosen = [words[min(len(words) - 1, int(len(words) ** draw.random()) - 1)] for _ in range(length)]
        sentences.append(" ".join(chosen).capitalize() + ".")
        left -= length
    return " ".join(sentences)
