"""Which language is a text in: on sentences written for this test."""

from __future__ import annotations

import pytest

from gossamer.parse.text.language import MIN_LETTERS, detect_language
from gossamer.parse.text.language_words import ARABIC, CYRILLIC, DEVANAGARI, LATIN, LETTERS

SENTENCES = [
    ("en", "The council said on Monday that the old bridge would be closed until spring."),
    ("en", "Where can I find the opening hours of the library?"),
    ("de", "Der Gemeinderat hat am Montag beschlossen, die alte Brücke bis zum Frühjahr zu sperren."),
    ("de", "Wo finde ich die Öffnungszeiten der Bibliothek?"),
    ("fr", "Le conseil municipal a décidé lundi de fermer le vieux pont jusqu'au printemps."),
    ("fr", "Où puis-je trouver les horaires d'ouverture de la bibliothèque ?"),
    ("es", "El ayuntamiento decidió el lunes cerrar el viejo puente hasta la primavera."),
    ("es", "¿Dónde puedo encontrar el horario de la biblioteca?"),
    ("pt", "A câmara municipal decidiu na segunda-feira fechar a ponte velha até à primavera."),
    ("pt", "Onde posso encontrar o horário da biblioteca?"),
    ("it", "Il consiglio comunale ha deciso lunedì di chiudere il vecchio ponte fino alla primavera."),
    ("it", "Dove posso trovare gli orari della biblioteca?"),
    ("nl", "De gemeenteraad heeft maandag besloten de oude brug tot het voorjaar te sluiten."),
    ("nl", "Waar kan ik de openingstijden van de bibliotheek vinden?"),
    ("sv", "Kommunfullmäktige beslutade i måndags att stänga den gamla bron till våren."),
    ("sv", "Var hittar jag bibliotekets öppettider och vad kostar det?"),
    ("da", "Byrådet besluttede mandag at lukke den gamle bro indtil foråret."),
    ("da", "Hvor finder jeg bibliotekets åbningstider, og hvad koster det?"),
    ("no", "Kommunestyret vedtok mandag å stenge den gamle broen til våren."),
    ("no", "Hvor finner jeg åpningstidene til biblioteket, og hva koster det å komme inn?"),
    ("fi", "Kunnanvaltuusto päätti maanantaina sulkea vanhan sillan kevääseen asti, mutta se ei ole vielä varmaa."),
    ("fi", "Mistä löydän kirjaston aukioloajat, ja mitä se maksaa?"),
    ("pl", "Rada miasta postanowiła w poniedziałek zamknąć stary most do wiosny."),
    ("pl", "Gdzie mogę znaleźć godziny otwarcia biblioteki?"),
    ("cs", "Zastupitelstvo v pondělí rozhodlo, že starý most bude do jara uzavřen."),
    ("cs", "Kde najdu otevírací dobu knihovny a kolik to stojí?"),
    ("sk", "Zastupiteľstvo v pondelok rozhodlo, že starý most bude do jari uzavretý."),
    ("sk", "Kde nájdem otváracie hodiny knižnice a koľko to stojí, keď nie som členom?"),
    ("sl", "Občinski svet je v ponedeljek sklenil, da bo stari most do pomladi zaprt."),
    ("sl", "Kje lahko najdem odpiralni čas knjižnice in koliko to stane?"),
    ("hr", "Gradsko vijeće odlučilo je u ponedjeljak da će stari most biti zatvoren do proljeća."),
    ("hr", "Gdje mogu pronaći radno vrijeme knjižnice i što mi je potrebno?"),
    ("hu", "A városi tanács hétfőn úgy döntött, hogy a régi híd tavaszig zárva marad."),
    ("hu", "Hol találom a könyvtár nyitvatartását, és mennyibe kerül?"),
    ("ro", "Consiliul local a decis luni să închidă podul vechi până în primăvară."),
    ("ro", "Unde pot găsi programul bibliotecii și cât costă?"),
    ("tr", "Belediye meclisi pazartesi günü eski köprünün bahara kadar kapatılmasına karar verdi."),
    ("tr", "Kütüphanenin açılış saatlerini nerede bulabilirim ve bu ne kadar?"),
    ("id", "Dewan kota memutuskan pada hari Senin untuk menutup jembatan tua itu sampai musim semi."),
    ("id", "Di mana saya bisa menemukan jam buka perpustakaan?"),
    ("vi", "Hội đồng thành phố đã quyết định hôm thứ Hai đóng cửa cây cầu cũ cho đến mùa xuân."),
    ("vi", "Tôi có thể tìm giờ mở cửa của thư viện ở đâu?"),
    ("ca", "L'ajuntament va decidir dilluns tancar el pont vell fins a la primavera."),
    ("ca", "On puc trobar l'horari de la biblioteca i quant costa això?"),
    ("et", "Linnavolikogu otsustas esmaspäeval, et vana sild on kevadeni suletud."),
    ("et", "Kust ma leian raamatukogu lahtiolekuajad ja mis see maksab?"),
    ("lv", "Pilsētas dome pirmdien nolēma, ka vecais tilts būs slēgts līdz pavasarim."),
    ("lv", "Kur es varu atrast bibliotēkas darba laiku un cik tas maksā?"),
    ("lt", "Miesto taryba pirmadienį nusprendė, kad senasis tiltas bus uždarytas iki pavasario."),
    ("lt", "Kur galiu rasti bibliotekos darbo laiką ir kiek tai kainuoja?"),
    ("ru", "Городской совет решил в понедельник закрыть старый мост до весны."),
    ("ru", "Где я могу найти часы работы библиотеки?"),
    ("uk", "Міська рада вирішила в понеділок закрити старий міст до весни."),
    ("uk", "Де я можу знайти години роботи бібліотеки?"),
    ("be", "Гарадскі савет вырашыў у панядзелак закрыць стары мост да вясны."),
    ("be", "Дзе я магу знайсці гадзіны працы бібліятэкі?"),
    ("bg", "Общинският съвет реши в понеделник да затвори стария мост до пролетта."),
    ("bg", "Къде мога да намеря работното време на библиотеката?"),
    ("sr", "Градско веће је у понедељак одлучило да стари мост буде затворен до пролећа."),
    ("sr", "Где могу да нађем радно време библиотеке?"),
    ("mk", "Градскиот совет одлучи во понеделникот да го затвори стариот мост до пролет."),
    ("mk", "Каде можам да го најдам работното време на библиотеката?"),
    ("kk", "Қалалық кеңес дүйсенбіде ескі көпірді көктемге дейін жабу туралы шешім қабылдады."),
    ("el", "Το δημοτικό συμβούλιο αποφάσισε τη Δευτέρα να κλείσει την παλιά γέφυρα."),
    ("he", "מועצת העיר החליטה ביום שני לסגור את הגשר הישן עד האביב."),
    ("ar", "قرر مجلس المدينة يوم الاثنين إغلاق الجسر القديم حتى الربيع."),
    ("ar", "أين يمكنني العثور على ساعات عمل المكتبة؟"),
    ("fa", "شورای شهر روز دوشنبه تصمیم گرفت که پل قدیمی را تا بهار ببندد."),
    ("fa", "ساعت کار کتابخانه را از کجا می‌توانم پیدا کنم؟"),
    ("ur", "شہر کی کونسل نے پیر کو پرانے پل کو بہار تک بند کرنے کا فیصلہ کیا ہے۔"),
    ("hi", "नगर परिषद ने सोमवार को पुराने पुल को वसंत तक बंद करने का निर्णय लिया है।"),
    ("mr", "नगर परिषदेने सोमवारी जुना पूल वसंत ऋतूपर्यंत बंद ठेवण्याचा निर्णय घेतला आहे."),
    ("ne", "नगर परिषदले सोमबार पुरानो पुल वसन्तसम्म बन्द गर्ने निर्णय गरेको छ।"),
    ("th", "สภาเมืองตัดสินใจเมื่อวันจันทร์ที่จะปิดสะพานเก่าจนถึงฤดูใบไม้ผลิ"),
    ("ja", "市議会は月曜日、古い橋を春まで閉鎖することを決定した。"),
    ("zh", "市议会周一决定关闭旧桥直到春天。"),
    ("ko", "시의회는 월요일에 오래된 다리를 봄까지 폐쇄하기로 결정했다."),
    ("ka", "საკრებულომ ორშაბათს გადაწყვიტა ძველი ხიდის დახურვა გაზაფხულამდე."),
]

# Not used to choose the words: longer, and of another subject.
PARAGRAPHS = [
    (
        "en",
        "Bread made at home keeps for about three days. You mix flour, water and salt, leave the dough to rest "
        "overnight, and bake it in a hot oven until the crust is brown.",
    ),
    (
        "de",
        "Selbst gebackenes Brot hält sich etwa drei Tage. Man mischt Mehl, Wasser und Salz, lässt den Teig über "
        "Nacht ruhen und backt ihn im heißen Ofen, bis die Kruste braun ist.",
    ),
    (
        "fr",
        "Le pain fait maison se conserve environ trois jours. On mélange la farine, l'eau et le sel, on laisse "
        "reposer la pâte toute la nuit, puis on la cuit dans un four très chaud.",
    ),
    (
        "es",
        "El pan hecho en casa se conserva unos tres días. Se mezclan la harina, el agua y la sal, se deja reposar "
        "la masa durante la noche y se hornea hasta que la corteza esté dorada.",
    ),
    (
        "pt",
        "O pão feito em casa conserva-se cerca de três dias. Misturam-se a farinha, a água e o sal, deixa-se a "
        "massa descansar durante a noite e coze-se no forno até a crosta ficar dourada.",
    ),
    (
        "it",
        "Il pane fatto in casa si conserva per circa tre giorni. Si mescolano la farina, l'acqua e il sale, si "
        "lascia riposare l'impasto per una notte e lo si cuoce nel forno ben caldo.",
    ),
    (
        "nl",
        "Zelfgebakken brood blijft ongeveer drie dagen goed. Je mengt meel, water en zout, laat het deeg een nacht "
        "rusten en bakt het daarna in een hete oven totdat de korst bruin is.",
    ),
    (
        "sv",
        "Hembakat bröd håller sig i ungefär tre dagar. Man blandar mjöl, vatten och salt, låter degen vila över "
        "natten och gräddar den sedan i en het ugn tills skorpan är brun.",
    ),
    (
        "da",
        "Hjemmebagt brød kan holde sig i cirka tre dage. Man blander mel, vand og salt, lader dejen hvile natten "
        "over og bager den bagefter i en varm ovn, indtil skorpen er brun.",
    ),
    (
        "no",
        "Hjemmebakt brød holder seg i omtrent tre dager. Du blander mel, vann og salt, lar deigen hvile over "
        "natten og steker den etterpå i en varm ovn til skorpen er brun.",
    ),
    (
        "fi",
        "Kotona leivottu leipä säilyy noin kolme päivää. Jauhot, vesi ja suola sekoitetaan, taikina saa levätä yön "
        "yli, ja sitten se paistetaan kuumassa uunissa, kunnes kuori on ruskea.",
    ),
    (
        "pl",
        "Chleb pieczony w domu zachowuje świeżość przez około trzy dni. Miesza się mąkę, wodę i sól, zostawia "
        "ciasto na noc, a potem piecze się je w gorącym piecu, aż skórka będzie brązowa.",
    ),
    (
        "cs",
        "Domácí chléb vydrží asi tři dny. Smíchá se mouka, voda a sůl, těsto se nechá přes noc odpočinout a potom "
        "se peče v horké troubě, dokud není kůrka hnědá.",
    ),
    (
        "hu",
        "A házi kenyér körülbelül három napig marad friss. A lisztet, a vizet és a sót összekeverjük, a tésztát "
        "egy éjszakán át pihentetjük, majd forró sütőben megsütjük.",
    ),
    (
        "ro",
        "Pâinea făcută în casă se păstrează cam trei zile. Se amestecă făina, apa și sarea, se lasă aluatul să se "
        "odihnească peste noapte și apoi se coace în cuptorul încins.",
    ),
    (
        "tr",
        "Evde yapılan ekmek yaklaşık üç gün taze kalır. Un, su ve tuz karıştırılır, hamur bir gece dinlendirilir "
        "ve sonra kabuğu kızarana kadar sıcak fırında pişirilir.",
    ),
    (
        "id",
        "Roti buatan sendiri dapat bertahan sekitar tiga hari. Campurkan tepung, air dan garam, biarkan adonan itu "
        "semalam, lalu panggang dalam oven yang panas sampai kulitnya cokelat.",
    ),
    (
        "ru",
        "Домашний хлеб хранится около трёх дней. Смешайте муку, воду и соль, оставьте тесто на ночь, а потом "
        "выпекайте его в горячей духовке, пока корка не станет коричневой.",
    ),
    (
        "uk",
        "Домашній хліб зберігається близько трьох днів. Змішайте борошно, воду та сіль, залиште тісто на ніч, а "
        "потім випікайте його в гарячій духовці, доки скоринка не стане коричневою.",
    ),
    (
        "bg",
        "Домашният хляб се запазва около три дни. Смесват се брашното, водата и солта, тестото се оставя да "
        "почине през нощта и след това се пече в гореща фурна.",
    ),
]


@pytest.mark.parametrize(("code", "text"), SENTENCES)
def test_a_sentence_is_known(code: str, text: str) -> None:
    assert detect_language(text).code == code


@pytest.mark.parametrize(("code", "text"), PARAGRAPHS)
def test_a_paragraph_is_known(code: str, text: str) -> None:
    found = detect_language(text)
    assert found.code == code
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    "text", ["", "   ", "12345 67890", "qwpe zxcv mnbv rtyu", "😀😀😀", "a" * (MIN_LETTERS - 1), "\x00\ud800"]
)
def test_if_there_is_nothing_to_go_by_nothing_is_said(text: str) -> None:
    assert detect_language(text).code == ""


def test_a_foreign_quotation_does_not_turn_a_text() -> None:
    text = "The sign above the door of the old house said «Дом» and nobody in the town knew what it was for. " * 3
    assert detect_language(text).code == "en"


def test_the_middle_of_a_long_text_has_a_say() -> None:
    menu = "Home News Sport Login Shop Blog Info Kontakt " * 40
    article = "Der Gemeinderat hat am Montag beschlossen, dass die alte Brücke bis zum Frühjahr gesperrt wird. " * 60
    assert detect_language(menu + article).code == "de"


def test_every_language_with_words_has_its_letters() -> None:
    for words in (LATIN, CYRILLIC, ARABIC):
        assert set(words) <= set(LETTERS)
    assert all(text == text.lower() for words in (LATIN, CYRILLIC, ARABIC, DEVANAGARI) for text in words.values())
