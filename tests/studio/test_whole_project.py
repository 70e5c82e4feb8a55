"""A whole project in a browser, from the lead's command line to the export, which has what was clicked."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from studio_server import any_database
from whole_project import Command, Mark, Person, Team, init, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

# Each browser, and each kind of database. Chromium with SQLite is what all other tests of pages have.
each_browser_and_database = pytest.mark.parametrize(
    ("browser", "database"), [("chromium", "sqlite"), ("firefox", "postgresql")], indirect=True
)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "studio"
REASON = "Read the last words again, please: nobody sells cars there. 🙏"

EXAM = {
    "exam-de-1": "vier", "exam-de-2": "Nordhafen", "exam-ar-1": "الخشب", "exam-ar-2": "المساء", "exam-zh-1": "山顶",
    "exam-zh-2": "秋天", "exam-hi-1": "अगस्त", "exam-hi-2": "काला", "exam-th-1": "ค่ำ", "exam-th-2": "สัปดาห์",
}  # fmt: skip
POET = Mark("dem Dichter Emil Quandt", "relation", "mouse")
CARS = Mark("विदेशी गाड़ियाँ", "invented", "mouse")
ICE = Mark("冬天全湖结冰", "invented", "mouse")
AGREED = [
    Mark("市政府", "contradictory"),
    Mark("𠮷田纸艺社", "entity", "mouse"),
    Mark("是全国最美的灯会", "subjective"),
]
ANNA = {
    "de-1": [Mark("1921", "entity", rating=4), POET],
    "ar-1": [Mark("1952", "entity", "mouse"), Mark("الشاعر سامي حداد", "entity")],
    "zh-1": AGREED,
    "hi-1": [Mark("1946", "entity"), Mark("क्षत्रिय राजा", "entity", "mouse", rating=2)],
    "th-1": [Mark("2554", "entity"), Mark("ทุกวันจันทร์", "contradictory")],
    "de-2": [
        Mark("neun", "entity"),
        Mark("das scho\u0308nste Cafe\u0301 der Stadt 😀", "subjective"),
        Mark("scho\u0308nste", "unverifiable", "mouse"),  # inside the other
    ],
    "ar-2": [Mark("المطار الجديد", "entity", "mouse"), Mark("ويزوره مليون سائح في السنة", "invented")],
    "zh-2": [Mark("二十", "entity")],
}
BO = {
    "de-1": [Mark("1921", "entity", "mouse")],
    "ar-1": [Mark("1952", "entity"), Mark("الشاعر", "relation", "mouse")],
    "zh-1": AGREED[::-1],
    "hi-1": [Mark("क्षत्रिय", "relation")],
    "th-1": [Mark("2554 🛶", "entity", "mouse"), Mark("วันจันทร์", "entity")],
    "hi-2": [Mark("शुक्रवार", "entity")],
    "th-2": [Mark("ภูเขา", "entity"), Mark("ค่าเข้าชม", "contradictory", "mouse")],
}


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}


DATA = _rows(EXAMPLE / "data.jsonl")
KEYS = {row["response"]: key for key, row in {**DATA, **_rows(EXAMPLE / "exam.jsonl")}.items()}

MarkedSpans = set[tuple[int, int, str]]


def _clicked(key: str, marks: list[Mark]) -> MarkedSpans:
    return {mark.place(DATA[key]["response"]) for mark in marks}


def _sit_exam(person: Person, *, knows: bool) -> None:
    """From the guidelines to the result."""
    person.button("Begin the exam")
    person.settled()
    while (text := person.response) is not None:
        if knows:
            person.mark(Mark(EXAM[KEYS[text]], "entity", "mouse" if "th" in KEYS[text] else "keys"))
        person.end("Submit")
    person.button("Submit the exam")
    person.page.wait_for_selector("main[aria-live] h1")


def _annotate(person: Person, marks: dict[str, list[Mark]]) -> list[str]:
    """All that there is for somebody now; which items these were."""
    done = []
    while (text := person.response) is not None:
        person.mark(*marks[KEYS[text]])
        if KEYS[text] in {"de-1", "ar-1", "th-1"}:
            person.screenshot(f"desk-{KEYS[text]}")
        person.end("Submit")
        done.append(KEYS[text])
    return done


def _review(person: Person) -> list[tuple[str, str]]:
    """Confirm what is right, correct one, send one back; what was done to which."""
    done = []
    while (text := person.response) is not None:
        key, verdict = KEYS[text], "Confirm"
        spans = person.page.locator(".spans h3").last.inner_text()
        if key == "hi-2" and spans.startswith("1 "):
            verdict = "Send back"
            person.page.locator("#send-back").click()
            person.page.get_by_label("What should be changed?").fill(REASON)
            person.screenshot("send-back")
        elif key == "zh-2":
            verdict = "Submit corrections"
            person.mark(ICE)
            person.screenshot("correct")
        person.end(verdict)
        done.append((key, verdict))
    return done


def _settle(lead: Person, key: str, whose: str) -> None:
    """Start from what somebody marked; of the German one, another type."""
    lead.page.goto(f"{lead.url}/lead/disagreements")
    with lead.page.expect_response(re.compile(r"/api/assignments/\d+$")):
        lead.button(f"Adjudicate {key}")
    lead.settled()
    lead.page.locator(".adjudicated button", has_text=whose).click()
    while (undecided := lead.page.locator('.vote[data-state="open"]')).count():
        undecided.first.get_by_role("button", name="Reject").click()
    if key == "de-1":
        lead.page.locator("#response").focus()
        lead.page.keyboard.press("Escape")
        lead.page.keyboard.press("Home")
        for pressed in ("Tab", "Tab", "1"):  # the second mark becomes an entity
            lead.page.keyboard.press(pressed)
        lead.screenshot("settle")
    with lead.page.expect_response("**/api/lead/adjudications"):  # the next disagreement
        lead.page.get_by_role("button", name="Submit").click()


def _exported(lead: Person, name: str) -> dict[str, bytes]:
    """The files of an export that the lead downloads."""
    with lead.page.expect_download() as waiting:
        lead.page.get_by_role("link", name=f"Download {name}").click()
    with zipfile.ZipFile(io.BytesIO(Path(waiting.value.path()).read_bytes())) as archive:
        return {
            Path(file).relative_to(Path(file).parts[0]).as_posix(): archive.read(file) for file in archive.namelist()
        }


def _layers(row: dict[str, Any]) -> dict[str, MarkedSpans]:
    """Annotator to what they marked."""
    return {
        one["annotator"]: {(span["start"], span["end"], span["type"]) for span in one["spans"]}
        for one in row["annotations"]
    }


@each_browser_and_database
def test_a_project_from_the_first_command_to_the_export(browser: Browser, database: str, tmp_path: Path) -> None:
    file = init(tmp_path / "five", "--preset", "mfava", "--languages", "de,zh")
    assert 'task = "spans"' in file.read_text("utf-8")
    for name in ("project.toml", "data.jsonl", "exam.jsonl"):  # and the lead looks through it, and fills it in
        shutil.copy(EXAMPLE / name, file.parent)
    file.write_text(file.read_text("utf-8").replace("[work]\n", '[work]\norder = "file"\n'), "utf-8")
    command = Command(file.parent, database)
    assert json.loads(command("import", "--json"))["added"] == dict.fromkeys(("ar", "de", "hi", "th", "zh-Hans"), 4)

    with serving(file.parent, database) as url:
        team = Team(url, browser)
        lead, anna, bo = team.person("Ines"), team.person("Anna"), team.person("Bo", dark=True)
        carl, rev = team.person("Carl ⚘", dark=True), team.person("Rev")
        lead.join(command.link("lead", url))
        lead.page.goto(f"{url}/lead/people")
        lead.button("Make a link")
        annas_link = lead.page.get_by_role("textbox", name="Invitation link").input_value()
        bos_link = command.link("annotator", url)

        for person, link, knows in ((anna, annas_link, True), (bo, bos_link, True)):
            person.join(link)
            person.screenshot("exam")
            _sit_exam(person, knows=knows)
            assert person.page.locator("h1").inner_text() == "You passed"
            person.screenshot("passed")
            person.button("To my items")
            person.settled()
        carl.join(command.link("annotator", url))
        _sit_exam(carl, knows=False)
        assert carl.page.locator("h1").inner_text() == "Not passed this time"
        carl.button("Try again")
        _sit_exam(carl, knows=False)
        assert carl.page.locator("h1").inner_text() == "You did not pass the exam"
        carl.screenshot("out")
        carl.page.goto(f"{url}/mark")
        carl.settled()
        assert carl.response is None

        assert sorted(_annotate(anna, ANNA)) == sorted(ANNA)
        first = KEYS[bo.response or ""]
        bo.mark(BO[first][0])
        bo.wait_saved()
        bo = team.person("Bo", dark=True, viewport={"width": 480, "height": 900})  # a smaller device
        bo.come_back(bos_link)
        bo.settled()
        assert KEYS[bo.response or ""] == first
        assert bo.page.locator(".span-line").count() == 1  # as it was left
        bo.screenshot("small")
        assert sorted(_annotate(bo, {**BO, first: BO[first][1:]})) == sorted(BO)

        rev.join(command.link("reviewer", url))
        rev.settled()
        rev.screenshot("review")
        verdicts = _review(rev)
        assert len(verdicts) == len(ANNA) + len(BO)
        assert [one for one in verdicts if one[1] != "Confirm"] == [
            ("zh-2", "Submit corrections"),
            ("hi-2", "Send back"),
        ]

        bo.page.reload()
        bo.settled()
        assert KEYS[bo.response or ""] == "hi-2"
        assert REASON in bo.page.locator(".returned").inner_text()
        bo.screenshot("returned")
        bo.mark(CARS)
        bo.end("Submit")
        rev.page.reload()
        rev.settled()
        assert _review(rev) == [("hi-2", "Confirm")]

        for tab in ("", "people", "agreement", "disagreements", "items"):
            lead.page.goto(f"{url}/lead/{tab}")
            lead.page.wait_for_load_state("networkidle")
            lead.screenshot(f"lead-{tab or 'progress'}")
        lead.page.emulate_media(color_scheme="dark")
        for key, whose in (("de-1", "Anna"), ("ar-1", "Anna"), ("hi-1", "Anna"), ("th-1", "Bo")):
            _settle(lead, key, whose)
        assert json.loads(command("settle", "--json"))["settled"] == 1  # the one on which both say the same

        for tab in ("", "people", "agreement", "disagreements", "exports"):
            lead.page.goto(f"{url}/lead/{tab}")
            lead.page.wait_for_load_state("networkidle")
            lead.screenshot(f"dark-{tab or 'progress'}")
        ids = {one["name"]: one["id"] for one in lead.get("/api/lead/overview")["people"]}
        files = {
            name: _exported(lead, name) for name in ("Native JSONL", "mFAVA JSON", "Label Studio JSON", "Inline tags")
        }
        _native(files["Native JSONL"], ids)
        _mfava(files["mFAVA JSON"], ids)
        _label_studio(files["Label Studio JSON"], ids)
        for person in (lead, anna, bo, carl, rev):
            assert person.trouble == []
    command("export", str(tmp_path / "typed"))
    assert (tmp_path / "typed" / "data.jsonl").read_bytes() == files["Native JSONL"]["data.jsonl"]


def _gold() -> dict[str, MarkedSpans]:
    """What counts in the end, by what was clicked."""
    single = {key: ANNA[key] for key in ("de-2", "ar-2")} | {"zh-2": [*ANNA["zh-2"], ICE]}
    single |= {"hi-2": [*BO["hi-2"], CARS], "th-2": BO["th-2"]}
    shared = {key: ANNA[key] for key in ("ar-1", "zh-1", "hi-1")} | {"th-1": BO["th-1"]}
    shared["de-1"] = [ANNA["de-1"][0], Mark(POET.text, "entity")]
    return {key: _clicked(key, marks) for key, marks in {**single, **shared}.items()}


def _native(files: dict[str, bytes], ids: dict[str, str]) -> None:
    """Everybody's layer, gold, and all that happened."""
    rows = {row["id"]: row for row in map(json.loads, files["data.jsonl"].decode().splitlines())}
    wanted = {"Anna": ANNA, "Bo": {**BO, "hi-2": [*BO["hi-2"], CARS]}}
    gold = _gold()
    for key, sample in DATA.items():
        assert rows[key]["response"] == sample["response"]
        layers = _layers(rows[key])
        for name, marks in wanted.items():
            assert layers.pop(ids[name], None) == (_clicked(key, marks[key]) if key in marks else None), (key, name)
        silver = {(span["start"], span["end"], span["type"]) for span in sample["annotations"][0]["spans"]}
        assert layers == {"gold": gold[key], "silver": silver}, key
    ratings = {
        (key, sample["response"][span["start"] : span["end"]]): span["rating"]
        for key, sample in DATA.items()
        for one in rows[key]["meta"]["studio"]["layers"]
        if one["by"] == ids["Anna"]
        for span in one["layer"]["spans"]
        if span.get("rating")
    }
    assert ratings == {("de-1", "1921"): 4, ("hi-1", "क्षत्रिय राजा"): 2}
    events = [json.loads(line) for line in files["history.jsonl"].decode().splitlines()]
    kinds = [one["kind"] for one in events]
    assert (kinds.count("exam_passed"), kinds.count("exam_failed"), kinds.count("exam_out")) == (2, 1, 1)
    assert (kinds.count("return"), kinds.count("correct"), kinds.count("adjudicated")) == (1, 1, 4)
    assert kinds.count("conflict") == 0


def _mfava(files: dict[str, bytes], ids: dict[str, str]) -> None:
    """Tags around just what was clicked, in gold and in each annotator's file."""
    tagged = {key: _tagged(DATA[key]["response"], places) for key, places in _gold().items()}
    found = {}
    for tag in ("de", "ar", "zh", "hi", "th"):
        for row in json.loads(files[f"silver_gold_{tag}.json"]):
            found[KEYS[row["generated_text"]]] = row["gold_annotations"]
    assert found == tagged
    (row,) = [
        row for row in json.loads(files[f"annotators/{ids['Bo']}_th.json"]) if KEYS[row["generated_text"]] == "th-1"
    ]
    assert row["gold_annotations"] == _tagged(DATA["th-1"]["response"], _clicked("th-1", BO["th-1"]))


def _tagged(text: str, places: MarkedSpans) -> str:
    """Tags of places that nest or lie apart, put in from the end on."""
    cuts = [(start, 1, -end, f"<{type_}>") for start, end, type_ in places]
    cuts += [(end, 0, -start, f"</{type_}>") for start, end, type_ in places]
    for place, _, _, tag in sorted(cuts, reverse=True):
        text = text[:place] + tag + text[place:]
    return text


def _label_studio(files: dict[str, bytes], ids: dict[str, str]) -> None:
    """UTF-16 units there, and the words beside them."""
    for task in json.loads(files["data.json"]):
        key = task["data"]["id"]
        (anna,) = [one for one in task["annotations"] if one["annotator"] == ids["Anna"]] or [None]
        if anna is None:
            assert key not in ANNA
            continue
        text = DATA[key]["response"]
        wanted = {
            (len(text[:start].encode("utf-16-le")) // 2, text[start:end], type_)
            for start, end, type_ in _clicked(key, ANNA[key])
        }
        values = [result["value"] for result in anna["result"]]
        assert {(value["start"], value["text"], value["labels"][0]) for value in values} == wanted


TRANSLATIONS = [
    (
        "en-zh",
        "zh",
        "The ferry leaves at nine.",
        "渡轮九点从𠮷港出发，票价十元。",
        Mark("票价十元", "hallucination", "mouse"),
    ),
    ("en-ar", "ar", "The lamp is green.", "المصباح أخضر 💡 وثقيل جدا.", Mark("وثقيل جدا", "hallucination", "mouse")),
    ("en-de", "de", "The lamp is green.", "Die Lampe ist gru\u0308n.", None),
]


@any_database
def test_translations_are_marked_and_leave_as_hat(browser: Browser, database: str, tmp_path: Path) -> None:
    file = init(tmp_path / "hat", "--preset", "hat", "--name", "Translations")
    text = file.read_text("utf-8")
    kept, _, rest = text.partition("[exam]")
    work = rest[rest.index("[work]") :].replace("reviews = 1", 'reviews = 0\norder = "file"')
    file.write_text(kept + work, "utf-8")
    rows = [
        {"id": key, "language": tag, "task": "translation", "response": response,
         "evidence": [{"text": source, "language": "en"}]}
        for key, tag, source, response, _ in TRANSLATIONS
    ]  # fmt: skip
    (file.parent / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    command = Command(file.parent, database)
    command("import")
    with serving(file.parent, database) as url:
        anna = Team(url, browser).person("Anna")
        anna.join(command.link("annotator", url))
        for _, _, _, response, mark in TRANSLATIONS:
            anna.settled()
            assert anna.response == response
            if mark is not None:
                anna.mark(mark)
            anna.page.get_by_label("No issues").check()
            anna.screenshot(f"translation-{len(response)}")
            anna.end("Submit")
        assert anna.response is None
        asked: list[str] = []
        anna.page.on("request", lambda request: asked.append(request.url))
        anna.page.wait_for_timeout(1000)
        assert asked == []  # where there is nothing to do, nobody asks again and again
        assert anna.trouble == []
    command("export", str(tmp_path / "out"), "--to", "hat")
    found = {row["id"]: row for row in json.loads((tmp_path / "out" / "data.json").read_text("utf-8"))}
    for key, tag, source, response, mark in TRANSLATIONS:
        row = found[key]
        assert (row["srcLocale"], row["tgtLocale"], row["source"], row["target"]) == ("en", tag, source, response)
        spans = [(span["start"], span["end"], span["text"]) for error in row["errors"] for span in error["spans"]]
        assert spans == ([] if mark is None else [(*mark.place(response)[:2], mark.text)])


TOWNS = {"de": ("Kiel", "Jena", "Bonn", "Ulm"), "ko": ("부산", "대구", "인천", "수원")}
BOATS = {
    "de": (
        "Wann wurde das Boot {n} gebaut?",
        "Das Boot {n} wurde {year} in {town} gebaut und fährt bis heute.",
        ("Das Boot {n} wurde {true} in {town} gebaut.", " Es fährt bis heute auf dem Fluss."),
    ),
    "ko": (
        "{n}호는 언제 건조되었습니까?",
        "{n}호는 {year} 년에 {town}에서 건조되어 지금도 운항한다.",
        ("{n}호는 {true} 년에 {town}에서 건조되었다.", " 지금도 강을 운항한다."),
    ),
}
STUDY = """
[study]
title = "Boats"
estimator = "ppi"
estimators = ["raw"]
[responses]
path = "{data}"
[[models]]
name = "m"
[[detectors]]
name = "grounding"
[labels]
path = "{labels}"
"""


_Boats = dict[str, tuple[dict[str, Any], list[Mark]]]


def _boats() -> _Boats:
    """Answers of a model by key, with what is wrong in each: mostly the year, and in every other one how it ends."""
    boats: _Boats = {}
    for tag, count in (("de", 120), ("ko", 4)):  # as a file is that somebody made: one language after the other
        for number in range(count):
            true, wrong, more = 1800 + 2 * number, number % 8 != 0, tag == "de" and number % 2
            words = {"n": f"{tag.upper()}-{number:03}", "town": TOWNS[tag][number % 4], "true": true}
            question, response, (evidence, end) = BOATS[tag]
            row = {"id": f"{tag}-{number:03}", "language": tag, "task": "qa", "generator": {"name": "m"}}
            row |= {"question": question.format(**words), "response": response.format(year=true + 7 * wrong, **words)}
            row["evidence"] = [{"text": evidence.format(**words) + end * (not more), "language": tag}]
            marks = [Mark(str(true + 7), "entity", "keys" if tag == "de" else "mouse")] * wrong
            boats[str(row["id"])] = row, [*marks, *[Mark("fährt bis heute", "invented")] * more]
    return boats


def _veriglot(*words: str) -> str:
    command = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _annotate_boats(person: Person, boats: _Boats, disputed: str | None = None) -> dict[str, bool]:
    """Hand in all that there is, with the town marked in one item; keys to whether suggestions were shown."""
    by_text = {row["response"]: key for key, (row, _) in boats.items()}
    done: dict[str, bool] = {}
    while (text := person.response) is not None:
        key = by_text[text]
        marks = {mark.text: mark for mark in boats[key][1]}
        suggested = person.page.locator(".suggested")
        done[key] = suggested.count() > 0
        while suggested.count():
            right = marks.pop(suggested.first.locator(".quoted").inner_text(), None)
            suggested.first.get_by_role("button", name="Accept" if right else "Reject").click()
        person.mark(*marks.values())
        if key == disputed:
            person.mark(next(Mark(town, "relation") for town in TOWNS["de"] if town in text))
        if len(done) == 3:
            person.screenshot("boats")
        person.end("Submit")
    return done


def _confirm(reviewer: Person) -> int:
    """Confirm all that there is; how many."""
    count = 0
    reviewer.page.reload()
    reviewer.settled()
    while reviewer.response is not None:
        reviewer.end("Confirm")
        count += 1
    return count


def _rate(lead: Person, labels: int) -> tuple[str, float]:
    """The German rate on the page of the rates, once it is made of so many labels, and the width of its interval."""
    until = time.monotonic() + 120
    row = lead.page.get_by_role("region", name="Rates").locator("tbody", has_text="German").locator("tr").last
    while True:
        lead.page.goto(f"{lead.url}/lead/rates")
        row.wait_for()
        shown, rate, interval, *_ = row.locator("td").all_inner_texts()
        if shown == str(labels):
            break
        assert time.monotonic() < until, (shown, labels)
        lead.page.wait_for_timeout(1000)
    lead.screenshot(f"rates-{labels}")
    low, high = re.findall(r"([\d.]+)%", interval)
    return rate, float(high) - float(low)


def _set(lead: Person, settings: dict[str, str]) -> None:
    """Change settings on their page."""
    lead.page.goto(f"{lead.url}/lead/settings")
    for label, value in settings.items():
        lead.page.get_by_label(label).press("ControlOrMeta+a")  # Firefox fills numbers beside what is there
        lead.page.keyboard.type(value, delay=50)  # as people type: what stands there is written anew between two keys
        assert lead.page.get_by_label(label).input_value() == value
    lead.button("Save")
    lead.page.get_by_role("status").get_by_text("Saved").wait_for()
    lead.screenshot("settings")


def _give_and_take_back(lead: Person, name: str) -> tuple[str, str]:
    """Assign the last two German items to somebody and take one back: what they keep, and what was taken."""
    page = lead.page
    page.goto(f"{lead.url}/lead/items?language=de&state=free")
    page.wait_for_selector("tbody th a")
    keep, take = page.locator("tbody th a").all_inner_texts()[-2:]
    for key in (keep, take):
        page.get_by_label(f"Select {key}").check()
    page.get_by_role("group", name="Selected: 2").get_by_label("Person").select_option(name)
    lead.button("Assign")
    page.get_by_text("Items changed: 2.").wait_for()
    page.goto(f"{lead.url}/lead/items?language=de&state=open")
    page.get_by_label(f"Select {take}").check()
    lead.screenshot("items")
    lead.button("Unassign")
    lead.button("Yes")
    page.get_by_text("Items changed: 1.").wait_for()
    expect(page.get_by_role("link", name=take)).to_have_count(0)
    assert page.get_by_role("link", name=keep).count() == 1
    return keep, take


@each_browser_and_database
def test_a_project_with_a_detector_from_its_suggestions_to_a_narrower_rate(
    browser: Browser, database: str, tmp_path: Path
) -> None:
    boats, data = _boats(), tmp_path / "answers.jsonl"
    data.write_text("\n".join(json.dumps(row) for row, _ in boats.values()), "utf-8")
    file = init(tmp_path / "boats", "--preset", "mfava", "--data", str(data), "--languages", "de,ko")
    marked = file.parent / "marked.jsonl"
    _veriglot("detect", str(data), "-o", str(marked), "--detector", "grounding", "--words", "--quiet")
    text = file.read_text("utf-8") + '[suggestions]\npredictions = "marked.jsonl"\nshare = 0.5\n'
    for name, old, new in (("overlap", 50, 2), ("per_person", 50, 8), ("reviews", 0, 1)):
        assert f"{name} = {old}" in text
        text = text.replace(f"{name} = {old}", f"{name} = {new}")
    file.write_text(text.replace("[work]\n", "[work]\nhalf_width = 0.001\n"), "utf-8")
    command = Command(file.parent, database)
    counts = json.loads(command("import", "--json"))
    assert (counts["added"], counts["predictions"]) == ({"de": 120, "ko": 4}, 124)

    with serving(file.parent, database) as url:
        team = Team(url, browser)
        lead, anna, bo, rev = (team.person(name) for name in ("Ines", "Anna", "Bo", "Rev"))
        for person, role in ((lead, "lead"), (bo, "annotator")):
            person.join(command.link(role, url))
        keep, take = _give_and_take_back(lead, "Bo")
        bo.page.reload()
        bo.settled()
        anna.join(command.link("annotator", url))
        anna.settled()
        done = _annotate_boats(anna, boats)
        shared = next(key for key in done if key.startswith("de"))  # what both have comes first
        more = _annotate_boats(bo, boats, disputed=shared)
        assert list(more)[1] == keep  # after what was open already, before anything new
        assert sum(key.startswith("ko") for key in {**done, **more}) == 4  # though the file has them last
        done |= more
        rev.join(command.link("reviewer", url))
        assert _confirm(rev) == 2 * 4 + 2 * 8

        _set(lead, {"Target of the rates": "50", "Other items per person": "15"})
        lead.page.goto(f"{url}/lead/rates")
        german = lead.page.get_by_role("region", name="Rates").locator("tbody", has_text="German")
        german.get_by_text("precise enough").wait_for(timeout=60_000)
        german.get_by_text("Submitted without final labels: 1. They can widen the interval").wait_for()
        lead.page.get_by_text("Languages that are precise enough get no new items").wait_for()
        anna.page.reload()
        anna.page.get_by_text("Enough labels for now: German.").wait_for()
        lead.screenshot("enough")

        lead.page.goto(f"{url}/lead/disagreements")
        lead.button("Adjudicate one after the other")
        lead.page.wait_for_selector(".bar")
        lead.page.locator("#response").press("x")
        expect(lead.page.locator("#votes-open")).to_have_text("0 still to decide")
        lead.page.get_by_label("Why? (a short note").fill("The boat was built there.")
        lead.screenshot("adjudication")
        lead.page.locator("#response").press("Enter")
        lead.page.wait_for_url("**/lead/disagreements")

        def labels() -> int:
            return len([key for key in done if key.startswith("de") and key not in {keep, take}])

        _, wide = _rate(lead, labels())
        _set(lead, {"Target of the rates": "0.1"})  # and the queue is open again
        for person in (anna, bo):
            person.page.reload()
            person.settled()
            done |= _annotate_boats(person, boats)
        _confirm(rev)
        rate, narrow = _rate(lead, labels())
        assert narrow < wide
        effects = lead.page.get_by_role("region", name="Effect of suggestions")
        assert "–" not in effects.inner_text()
        lead.page.goto(f"{url}/lead/exports")
        files = _exported(lead, "Native JSONL")
        suggested = [one["suggested"] for one in lead.get("/api/lead/overview")["people"] if one["suggested"]]
        assert sum(one["accepted"] for one in suggested) > 0
        for person in (lead, anna, bo, rev):
            assert person.trouble == []
    _read_by_others(tmp_path, files, rate)
    rows = {row["id"]: row for row in map(json.loads, files["data.jsonl"].decode().splitlines())}
    assert list(rows) == list(boats)
    assert rows[shared]["meta"]["studio"]["gold"] == "adjudicated"
    assert rows[shared]["meta"]["studio"]["settled"]["why"] == "The boat was built there."
    for key in done:
        row, marks = boats[key]
        wanted = {mark.place(row["response"])[:2] for mark in marks}
        assert {place[:2] for place in _layers(rows[key])["gold"]} == wanted, key
    shown = {key: any(one.get("suggestions") for one in rows[key]["meta"]["studio"]["layers"]) for key in done}
    assert shown == done
    assert 0 < sum(shown.values()) < len(shown)


def _read_by_others(folder: Path, files: dict[str, bytes], rate: str) -> None:
    """`evaluate` makes a profile of the labels; `study` and `estimate` give the rate that the page showed."""
    labels, marked, data = folder / "labels.jsonl", folder / "boats" / "marked.jsonl", folder / "answers.jsonl"
    labels.write_bytes(files["labels.jsonl"])
    profile = folder / "profile.json"
    _veriglot("evaluate", str(labels), "--predictions", str(marked), "-o", str(profile), "--quiet")
    assert json.loads(profile.read_text("utf-8"))["data"]["kind"] == "gold"
    told = _veriglot("estimate", str(marked), "--samples", str(data), "--labels", str(labels), "--json")
    rates = {row["language"]: row["rate"] for row in json.loads(told)}
    config = folder / "study.toml"
    config.write_text(STUDY.format(data=data, labels=labels), "utf-8")
    _veriglot("study", "run", str(config), "-o", str(folder / "run"), "--quiet")
    cells = json.loads((folder / "run" / "results.json").read_text("utf-8"))["cells"]
    (german,) = [cell["rates"][0] for cell in cells if cell["language"] == "de"]
    assert german["estimator"] == "ppi"
    assert f"{german['rate']:.1%}" == f"{rates['de']:.1%}" == rate
