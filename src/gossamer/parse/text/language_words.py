"""The function words by which languages that share a script are distinguished.

Written by hand: for each language the words that make up a third to half of running text
(articles, prepositions, pronouns, forms of to be and to have), in lower case, and the
letters that related languages do not use. A word that many of the languages share is weak
evidence and has a low weight (`language.weights`).
"""

from __future__ import annotations

LATIN: dict[str, str] = {
    "en": "the of and to in is that it was for on are as with his they at be this have from or had by but not what "
    "all were we when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into has more been who its now people than did my over only after "
    "our also you he may must because could should where while before between through any such does being",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er "
    "hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis "
    "mehr durch man sein wurde sei hatte kann gegen vom können schon wenn ihre seine unter wir soll ich eines jahr "
    "zwei diese dieser wieder keine sehr dann wo was ihr uns wurden beim sowie alle immer gibt zwischen ohne",
    "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont avec son ses "
    "aux ou mais comme nous sa elle fait été aussi leur bien peut ces cette tout deux ont vous être même entre était "
    "sans dont je lui ils on où très faire cela après notre avait avant encore toujours ainsi depuis chez si leurs "
    "quand donc vos mes tous autres alors celui",
    "es": "de la que el en y los se del las un por con una su para es al lo como más pero sus le ya o este sí porque "
    "esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante todos uno les ni contra "
    "otros ese eso ante ellos e esto antes algunos qué unos yo otro otras otra él tanto esa estos mucho nada ha han "
    "era fue ser está son tiene puede años hace cada así después mientras según dónde puedo cómo aquí ahora",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu "
    "sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre era depois sem mesmo aos ter "
    "seus quem nas me esse eles estão você tinha foram essa num nem suas meu às minha têm numa pelos elas havia seja "
    "qual será nós tenho lhe deles essas esses pelas este são ainda onde anos pode fazer",
    "it": "di e il la che in un per è una non sono del con da i le si al dei nel alla come più ma lo della anche gli "
    "delle ha ed o dal se su questo ci ho mi nella questa perché cosa era quando essere tra solo tutti ai sul fatto "
    "loro degli dopo hanno molto stato poi suo dalla cui sua prima nei senza alle due chi quello tutto fra così già "
    "negli anni può ancora fare ogni dove sia noi io lui",
    "nl": "de van het een en in is dat op te zijn met voor die niet aan er om ook als dan maar bij nog uit naar door "
    "over ze zich hij had wat werd of heeft worden kan tot wordt meer hebben deze geen was moet veel hun waar zou ik "
    "je dit zo onder wel al na heel andere tegen omdat moeten jaar alle nu wie mijn haar toen hem ons tussen onze "
    "kunnen zonder we ben daar waren eerste twee",
    "sv": "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan när "
    "år under också efter eller nu sin där vid mot ska skulle kommer ut får finns vara hade alla andra mycket än här "
    "då sedan över bara in blir upp även vad få två vill ha många hur mer hon detta utan varit sina blev inom mellan "
    "någon hans man oss ni dem något",
    "da": "og i at det en til er på af for med den der ikke de som har et han men var jeg sig fra vi så kan om når år "
    "også efter eller nu sin hvor ved mod skal ville kommer ud får være havde alle andre meget end her da siden over "
    "kun bliver op hvad to vil mange hvordan mere hun dette uden været sine blev mellem nogen hans man os noget "
    "selv ind deres jo dem blevet mig dig indtil lige hvis både bør mens",
    "no": "og i det på som er en til å han av for med at var de ikke den har jeg om et men så seg hun hadde fra vi du "
    "kan da ble ut skal vil ham etter over ved også bare eller sa nå dette noe være meg mot opp der når inn dem kunne "
    "andre blir alle noen sin ha år henne må selv sier få kom denne enn to hans bli ville før vært skulle går her "
    "slik gikk mer hva igjen fikk man alt mange ingen får oss hvor under siden hele dag gang sammen mellom",
    "fi": "ja on ei se että hän oli ovat mutta kun niin myös joka sen ole voi kuin vain nyt jos tai mitä olla sitä jo "
    "tämä ne sekä mukaan jotka hänen ollut kuitenkin siitä minä joita sitten siis koska kaikki mikä vielä hyvin kanssa "
    "jälkeen noin ettei minun tässä eivät vuonna vuoden jonka tämän olisi ennen ilman yli sillä saa pitää tulee oma "
    "nämä sinä me he te",
    "pl": "w i na z się nie do to że jest o a jak po co za od tak ale czy dla są przez jego ma go być był już tylko "
    "która które który oraz lub jej ich przed było można pod ze tym tego także roku kiedy mnie jeszcze może bardzo "
    "by bo nad mi była więc gdy ja tej również aby został będzie mają przy bez jako ten ta",
    "cs": "a v se na je to že s z do o i jako pro by ve k si za jsem ale po byl jeho od které který jsou co tak nebo "
    "jen už která bylo při podle byla až jak ze ke jejich před své také roce může než není tím aby když bude mezi "
    "však ještě které tento této kde již velmi proto či jsme byly pouze kolik jeho těchto",
    "sk": "a v sa na je to že s z do o i ako pre by vo k si za som ale po bol jeho od ktoré ktorý sú čo tak alebo len "
    "už ktorá bolo pri podľa bola až zo ku ich pred aj roku môže než nie tým aby keď bude medzi však ešte tento tejto "
    "kde veľmi preto či sme boli iba mal svoje",
    "sl": "in je v na za da se so ki z s pa po ne bi tudi od do pri kot ali še bil ga kako to ni sem že bolj lahko "
    "njegov zaradi samo med bila ima leta kar ker vse več vendar tako kjer biti bodo ter prav zelo če jih iz ob "
    "bo kje koliko smo naj ta",
    "hr": "i je u na se da su za od s ne a koji o kao iz što to do bi ali po nije ili te koja sam samo već bilo kako "
    "biti može godine ima bio pa nakon prema jer svoje kod bez više također ako još koje gdje ovo sve njegov smo vrlo "
    "kroz između te će bila",
    "hu": "a az és hogy nem is egy volt ez meg de már csak el azt mint még ha van kell be vagy ki mert lehet ezt "
    "után le azonban itt olyan pedig között lesz minden akkor így első által nagyon majd most két nincs magyar aki "
    "ami mi fel arra ennek amely után voltak lenne szerint ezek kell sem vele",
    "ro": "de și în a la cu pe nu o să care din un este mai pentru că se ce o au fi al ale fost sau dar prin ca după "
    "sunt lui era cum dintre fără iar așa aceasta acest această toate până când foarte unei unui poate doar atunci "
    "avea noi lor între peste ani anul prima fiind asupra ei el si sa in",
    "tr": "ve bir bu da de için ile çok olarak daha gibi olan ne kadar var en ama ben o değil sonra diye her ki şey "
    "mi olduğu iki zaman olduğunu şu kendi ya ise tarafından oldu biz yok büyük ilk bile bunun ancak olur nasıl hiç "
    "bunu onun yılında göre yeni ediyor sadece tüm arasında veya üzerinde önce bana sen siz ona",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada juga ke karena ada oleh mereka sudah saya atau "
    "adalah dia bisa tersebut seperti kita lebih telah sebagai hanya saat orang banyak anda kami dapat bagi bahwa "
    "tahun menjadi hari belum namun masih antara sangat setelah secara para satu tetapi harus kepada aku lain",
    "vi": "và của là có được cho không trong một các với người này đã những khi từ đến để ra về vào cũng như tôi thì "
    "năm nhiều ở đó lại sẽ phải theo trên sau bị nhưng việc nếu nước đang còn rằng tại làm hơn rất ông bà chỉ cùng "
    "mà anh nhà thể hai biết vì",
    "ca": "de la i el que a en els les un per amb una del és no al es com més dels són però aquest també o ha entre "
    "seva seu va ser han sobre fins quan pel aquesta on tot molt anys sense hi ja per què tots després part ens "
    "nosaltres perquè si me tenir fer pot dos estat van altres cada així mentre des això quant aquí "
    "fou nostra seus",
    "et": "ja on ei et see oli ka mis kui ta aga oma seda siis nii või ning kes selle tema ma et mida välja juba ole "
    "veel pärast kuid väga enam üks ainult siin mitte olnud kõik tuleb saab peab aasta eesti kus sest sellest olla "
    "mille kuni nad me te nende läbi kust oleks saada vana ajal",
    "lv": "un ir ar no uz kas ka par arī tas bet kā vai lai to bija viņš pie gada šo tika pēc ko nav pat jau tikai "
    "viņa līdz tā ne ja man kad būt šī mēs ļoti kur vēl tiek kurā bez viņi tad savu varētu pirms gan starp",
    "lt": "ir į kad iš su yra buvo tai kaip bet jis ne už apie tik o nuo jo savo jau po ar dar gali labai jie kai pat "
    "metų metais jos taip prie kuris kurie būti per turi ji šis mes tačiau todėl arba nes šiuo nebuvo pagal tarp",
}

CYRILLIC: dict[str, str] = {
    "ru": "и в не на что с он как по это а из у к за от но для так же его о только или еще ещё мы был было бы до "
    "когда они все была их если то вы уже при есть чтобы году нет может где быть время во со после также который "
    "которые я она было этого тем ли ни",
    "uk": "і в не на що з він як по це а із у до за від але для так же його про тільки або ще ми був було би коли вони "
    "всі була їх якщо то ви вже при є щоб року немає може де бути час та після також який які я вона цього й її під",
    "be": "і ў не на што з ён як па гэта а у да за ад але для так яго пра толькі або яшчэ мы быў было калі яны ўсе "
    "была іх калі вы ўжо пры ёсць каб годзе няма можа дзе быць час пасля таксама які якія я яна",
    "bg": "и в не на че с той как по това а от за но до така му само или още ние беше би когато те всички са тя ако "
    "вие вече при има да година няма може къде бъде време след също който които аз който се ще си е като през",
    "sr": "и је у на се да су за од с не а који о као из што то до би али по није или те која сам само већ било како "
    "бити може године има био па након према јер своје код без више такође ако још које где ово све њихов смо веома",
    "mk": "и во на да се од за со е не што тоа ги го како но по до или беше само кога тие сите таа ако веќе при има "
    "година нема може каде време потоа исто кој кои јас ќе би му им сè уште",
    "kk": "және бұл мен да де үшін бір бар деп ол осы еді болды болып қазақ туралы сол кейін бойынша көп жоқ емес "
    "ғана оның біз жылы керек болған арқылы туған дейін қарай",
}

ARABIC: dict[str, str] = {
    "ar": "في من على إلى أن التي الذي هذا هذه عن مع كان لا ما بين بعد قد كما ذلك كل أو لم حيث وقد ثم هو هي عند وكان "
    "كانت غير أي إن حتى خلال منذ قبل وفي ومن عام يوم",
    "fa": "و در به از که این است را با برای آن یک خود تا شد بر نیز هم بود می ها های شده کرد دارد اما یا باید هر ما "
    "پس اگر بین کند سال پیش چه کرده بودند دیگر",
    "ur": "کے کی میں ہے اور سے کا کو نے اس یہ ہیں پر کہ بھی تھا ایک جو تھے کر ہو نہیں لیے گیا ہوا اپنے ان وہ کیا تو "
    "تھی ساتھ بعد تک",
}

DEVANAGARI: dict[str, str] = {
    "hi": "के है में की और से का को पर ने यह कि एक हैं भी नहीं लिए इस था तो ही कर जो वह हो गया साथ या बाद तक थे थी अपने",
    "mr": "आहे आणि या च्या ते मध्ये ही हा व होते होता नाही एक हे तर केले केला त्यांनी आहेत असून साठी पण त्या म्हणून झाले येथे",
    "ne": "छ र को मा यो ले लाई पनि हो छन् गरेको भएको तथा एक गर्ने थियो नेपाल हुन् भने गर्न यस उनले सबै भयो तर लागि",
}

# The letters of each language: of Latin those beyond a-z, of the other scripts all of them. A letter that few
# languages have is evidence for these; one that a language does not have is evidence against it.
_RUSSIAN = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_SERBIAN = "абвгдежзијклмнопрстуфхцчшљњџ"
_ARABIC = "ءآأؤئابتثجحخدذرزسشصضطظعغفقلمنهو"

LETTERS: dict[str, str] = {
    "en": "",
    "de": "äöüß",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "es": "áéíñóúü",
    "pt": "ãáàâçéêíóôõú",
    "it": "àèéìíîòóù",
    "nl": "éëïóö",
    "sv": "åäöé",
    "da": "æøåé",
    "no": "æøåéòô",
    "fi": "äöå",
    "pl": "ąćęłńóśźż",
    "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "sl": "čšž",
    "hr": "čćđšž",
    "hu": "áéíóöőúüű",
    "ro": "ăâîșțşţ",
    "tr": "çğıöşüâî",
    "id": "é",
    "vi": "ăâđêôơưàảãáạằẳẵắặầẩẫấậèẻẽéẹềểễếệìỉĩíịòỏõóọồổỗốộờởỡớợùủũúụừửữứựỳỷỹýỵ",
    "ca": "àçèéíïòóúü",
    "et": "äöõüšž",
    "lv": "āčēģīķļņšūž",
    "lt": "ąčęėįšųūž",
    "ru": _RUSSIAN + "ё",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "sr": _SERBIAN + "ђћ",
    "mk": _SERBIAN + "ѓќѕ",
    "kk": _RUSSIAN + "ёәғқңөұүһі",
    "ar": _ARABIC + "إةىيك",
    "fa": _ARABIC + "پچژگکی",
    "ur": _ARABIC + "پچژگکیٹڈڑےںہھ",
}
