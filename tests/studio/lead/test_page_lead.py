"""The lead's pages in a browser: people, progress, agreement, disagreements, gold, batches, histories."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from lead_studio import HOSTILE, TEXTS
from playwright.sync_api import expect
from studio_server import any_database

if TYPE_CHECKING:
    from lead_studio import House, Visitor
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

ONE = {"de": [(4, 9, "entity"), (22, 29, "invented")], "ar": [(0, 6, "entity")]}
OTHER = {"de": [(4, 9, "entity")], "ar": [(0, 6, "relation")]}


def _button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def _worked(house: House) -> Visitor:
    """A lead, after two people annotated all that they were given."""
    assert house.person("Ali").hand_in(ONE) >= 4
    assert house.person("Bo").hand_in(OTHER) >= 4
    return house.person("Ines", "lead")


@any_database
def test_figures_of_an_exam_stand_in_whole_words_on_a_phone(house: House) -> None:
    house.person("Ali")
    page = house.person("Ines", "lead", viewport={"width": 390, "height": 844}).go("/lead/people", ".people")
    cell = page.locator("tr", has_text="Ali").locator("td").nth(1)
    wide = "(cell) => [...cell.querySelectorAll('*')].every((e) => e.scrollWidth <= cell.clientWidth)"
    assert "precision" in cell.inner_text()
    assert cell.evaluate("(cell) => cell.clientWidth") >= 130
    assert cell.evaluate(wide)


def test_a_lead_comes_to_the_progress(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/", ".tiles")
    assert page.url.endswith("/lead")
    told = lead.get("/api/lead/overview")
    tiles = dict(
        zip(page.locator(".tile dt").all_inner_texts(), page.locator(".tile dd").all_inner_texts(), strict=True)
    )
    done, items = (sum(row[name] for row in told["languages"]) for name in ("done", "items"))
    assert tiles["Annotated"].startswith(f"{done} / {items}")
    single = sum(row["single"] for row in told["languages"])
    assert " ".join(tiles["Final labels"].split()) == f"0 and {single} from a single annotation"
    assert single > 0
    assert tiles["To adjudicate"] == str(told["disagreements"])
    assert tiles["Cost"] == f"€{told['cost']:.2f}"
    table = page.get_by_role("region", name="By language")
    heads = [head.strip(" ↑↓") for head in table.locator("thead th").all_inner_texts()]
    assert heads[:3] == ["Language", "Items", "Share annotated"]
    assert table.locator("tbody th").all_inner_texts() == ["Arabic", "German"]
    edges = table.locator("thead .sort").evaluate_all(
        "all => all.map(one => [one.getBoundingClientRect().left, one.getBoundingClientRect().left + one.scrollWidth])"
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))  # no head lies over the next one
    german = table.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    row = next(row for row in told["languages"] if row["language"] == "de")
    assert (german[0], german[-1]) == (str(row["items"]), str(row["annotators"]))
    table.get_by_role("button", name="Language").click()
    assert table.locator("tbody th").all_inner_texts() == ["German", "Arabic"]
    assert table.locator("thead th").first.get_attribute("aria-sort") == "descending"
    assert lead.trouble == []


@any_database
def test_who_is_no_lead_sees_nothing_of_it(house: House) -> None:
    visitor = house.person("Kim")
    visitor.go("/lead/people", "#response")
    assert visitor.page.url.endswith("/mark")


def test_an_invitation_is_made_copied_taken_up_and_ended(house: House) -> None:
    lead = house.person("Ines", "lead")
    page = lead.go("/lead/people", ".invite")
    page.get_by_label("Reviewer").check()
    page.get_by_label("German").check()
    page.get_by_label("Note for yourself").fill(f"desk 4 {HOSTILE}")
    _button(page, "Make a link")
    link = page.get_by_role("textbox", name="Invitation link")
    link.wait_for()
    assert link.evaluate("node => node === document.activeElement")
    _button(page, "Copy")
    page.get_by_text("Copied.").wait_for()
    guest = house.stranger()
    guest.page.goto(link.input_value())
    guest.page.get_by_label("Your name here").fill("Rev")
    guest.page.get_by_label("I have read this and agree").check()
    _button(guest.page, "Join")
    guest.page.wait_for_url("**/mark")
    lead.go("/lead/people", ".people")
    row = page.get_by_role("row", name=re.compile("Rev"))
    assert "Reviewer · German" in row.inner_text()
    assert HOSTILE in row.inner_text()
    _button(page, "Remove access of Rev")
    page.get_by_role("button", name="Yes").click()
    row.locator(".stage-revoked").wait_for()
    assert guest.context.request.get(f"{house.url}/api/me").status == 401
    _button(page, "Restore access of Rev")
    row.locator(".stage-work").wait_for()
    assert lead.trouble == []


@any_database
def test_a_change_of_mind_changes_nothing(house: House) -> None:
    kim, lead = house.person("Kim"), house.person("Ines", "lead")
    page = lead.go("/lead/people", ".people")
    _button(page, "Remove access of Kim")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove access of Kim").wait_for()
    assert kim.get("/api/me")["person"]["name"] == "Kim"


def test_a_new_link_takes_the_place_of_the_old_one(house: House) -> None:
    kim, lead = house.person("Kim"), house.person("Ines", "lead")
    page = lead.go("/lead/people", ".people")
    _button(page, "New link for Kim")
    page.get_by_role("button", name="Yes").click()
    link = page.get_by_role("textbox", name="Invitation link")
    link.wait_for()
    assert kim.context.request.get(f"{house.url}/api/me").status == 401
    again = house.stranger()
    again.page.goto(link.input_value())
    again.page.get_by_text("Welcome back, Kim").wait_for()


def test_agreement_is_shown_as_it_is_computed(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/agreement", ".figures")
    told = lead.get("/api/lead/agreement")
    table = page.get_by_role("table", name="Annotators with each other")
    heads = [head.split("\n")[0].strip() for head in table.locator("thead th").all_inner_texts()]
    assert {"Cohen’s κ", "Krippendorff’s α", "Span F1"} <= set(heads)
    shown = table.get_by_role("row", name=re.compile("^German")).locator("td").first.inner_text()
    line = next(
        row
        for row in told["lines"]
        if (row["among"], row["measure"], row["scope"], row["language"]) == ("people", "kappa", "binary", "de")
        and row["between"] == ["all", "all"]
    )
    assert shown.startswith(f"{line['value']:.2f}")
    names = page.get_by_role("table", name="Pairs of people").locator("tbody th").all_inner_texts()
    assert [set(name.split(" · ")) for name in names] == [{"Ali", "Bo"}]
    page.get_by_text("Nobody has annotated 5 shared items that have silver labels").wait_for()
    silver = page.get_by_role("table", name="Each person with silver").locator("tbody th").all_inner_texts()
    assert all("Silver" in name for name in silver)
    assert len(silver) == 2
    _button(page, "With gamma")
    page.get_by_text("γ").first.wait_for()
    assert lead.trouble == []


@any_database
def test_of_too_few_items_there_is_a_figure_and_no_interval(house: House) -> None:
    page = _worked(house).go("/lead/agreement", ".figures")
    cell = page.get_by_role("table", name="Annotators with each other").get_by_role("row", name=re.compile("^German"))
    assert "too few items" in cell.locator("td").first.inner_text()
    assert "[" not in cell.inner_text()
    assert "fewer than 5 items" in (cell.locator("td small[title]").first.get_attribute("title") or "")


def test_a_lead_reads_names_and_how_reviewers_call_them(house: House) -> None:
    lead = _worked(house)
    house.link("reviewer")
    page = lead.go("/lead/people", ".people")
    heads = [head.split("\n") for head in page.locator(".people tbody th").all_inner_texts()]
    assert [head[0] for head in heads] == ["Ali", "Bo", "Ines", "Reviewer 1"]
    names = ["Annotator 1", "Annotator 2", "Lead 1"]
    assert [head[1] for head in heads] == [*(f"shown to others as {name}" for name in names), "not joined yet"]
    ids = [person["id"] for person in lead.get("/api/lead/overview")["people"]]
    for view in ("people", "agreement", "disagreements", "batches"):
        lead.go(f"/lead/{view}", ".people, .figures, .case, .card")
        said = page.locator("main").inner_text()
        assert not [id_ for id_ in ids if id_ in said], view


@pytest.mark.slow
def test_many_are_settled_by_a_rule(house: House) -> None:
    lead = _worked(house)
    house.person("Cy").hand_in(ONE)
    page = lead.go("/lead/disagreements", ".case")
    open_ = lead.get("/api/lead/overview")["disagreements"]
    page.get_by_text("Settle many items by a rule").click()
    page.get_by_label("Majority").check()
    _button(page, "Settle by this rule")
    page.get_by_text("Settle all items that this rule decides? All languages").wait_for()
    page.get_by_role("button", name="Yes").click()
    page.get_by_text(re.compile(rf"Settled: {open_}. Left to a lead: 0. Final labels unchanged: 0")).wait_for()
    expect(page.locator(".case")).to_have_count(0)
    page.get_by_label("Best agreement with silver").check()
    page.get_by_label("Also replace final labels from a rule").check()
    _button(page, "Settle by this rule")
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("Nobody has annotated 5 shared items in any language that have a silver layer.").wait_for()
    page.get_by_label("Majority").check()
    _button(page, "Settle by this rule")
    page.get_by_role("button", name="Yes").click()
    page.get_by_text(f"Final labels replaced: {open_}. Adjudicated by a lead and unchanged: 0.").wait_for()
    assert lead.get("/api/lead/overview")["disagreements"] == 0
    assert lead.trouble == []


@any_database
def test_without_shared_work_nothing_is_to_settle(house: House) -> None:
    page = house.person("Ines", "lead").go("/lead/disagreements", ".summary")
    expect(page.locator(".summary")).to_contain_text("An item appears here when two people")


@any_database
def test_without_shared_work_there_is_no_agreement(house: House) -> None:
    page = house.person("Ines", "lead").go("/lead/agreement", ".notice, .figures")
    assert "nothing to compare" in page.locator("main").inner_text()


def test_a_disagreement_is_read_side_by_side_and_settled(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/disagreements", ".case")
    case = page.locator(".case", has=page.locator('.marked-text[lang="de"]')).first
    key = case.locator("b").first.inner_text()
    sides = case.locator(".side")
    assert sides.locator("h4").all_inner_texts() == ["Ali", "Bo"]
    german = TEXTS["de"]
    assert sides.nth(0).locator("q").all_inner_texts() == [german[4:9], german[22:29]]
    assert sides.nth(1).locator("q").all_inner_texts() == [german[4:9]]
    assert sides.nth(0).locator(".marked-box").count() >= 2
    case.get_by_role("button", name=f"Adjudicate {key}").click()
    page.wait_for_url("**/mark/*")
    page.wait_for_selector("#response")
    number = int(page.url.rpartition("/")[2])
    given = lead.get(f"/api/assignments/{number}")
    assert given["purpose"] == "adjudicate"
    assert len(given["subjects"]) == 2
    event = {"event_id": "settled-by-a-lead", "base_version": given["version"], "kind": "submit", "seconds": 5.0}
    lead.post(
        f"/api/assignments/{number}/events",
        {**event, "layer": {"spans": [{"id": "g", "start": 4, "end": 9, "type": "entity"}]}},
    )
    lead.go(f"/lead/items/{given['item']['id']}", ".events")
    gold = page.locator(".side.known", has_text="Final labels")
    assert gold.locator("q").all_inner_texts() == [german[4:9]]
    shown = [" ".join(line.split()) for line in page.locator(".event p").all_inner_texts()]
    assert sum(line.endswith("Final labels set Ines") for line in shown) == 1
    assert not any("by rule" in line for line in shown)  # which gives nothing out, and imports nothing
    assert page.locator("h2").inner_text().startswith(key)
    lead.go("/lead/disagreements", ".summary")
    expect(page.locator(".case-head b", has_text=key)).to_have_count(
        0, timeout=30_000
    )  # the last list stands meanwhile
    assert lead.trouble == []


def test_votes_are_taken_by_click_and_key_and_the_next_disagreement_follows(house: House) -> None:
    lead = _worked(house)
    house.person("Cy").hand_in(ONE)
    page = lead.go("/lead/disagreements", ".case")
    assert page.locator(".case .tag", has_text="2 disputed").count() == 2  # entity or relation, in Arabic
    _button(page, "Adjudicate one after the other")
    page.wait_for_url("**/mark/*")
    page.wait_for_selector(".bar")
    first = page.url
    bars = {bar.get_attribute("title") for bar in page.locator(".bar").all()}
    assert bars == {"Ali: Entity", "Bo: Relation", "Cy: Entity"}
    lines = page.locator(".vote")
    told = [" ".join(text.split()) for text in lines.locator(".votes-of").all_inner_texts()]
    assert told == ["2 of 3 Ali · Cy", "1 of 3 Bo"]

    def states() -> list[str | None]:
        return [line.get_attribute("data-state") for line in lines.all()]

    page.keyboard.press("y")
    expect(page.locator("#votes-open")).to_have_text("1 still to decide")
    page.get_by_title("Bo: Relation").click()
    expect(lines.nth(1)).to_have_attribute("data-state", "taken")
    page.get_by_title("Bo: Relation").click()
    assert states() == ["taken", "open"]
    page.locator("#response").press("Enter")
    page.get_by_text("1 span is undecided").wait_for()
    assert page.url == first
    page.locator("#response").press("x")
    expect(lines.nth(1)).to_have_attribute("data-state", "left")
    page.locator("#response").press("End")
    page.keyboard.press("4")  # the last word, which nobody marked
    page.get_by_label("Why? (a short note").fill("The year is not in the source.")
    page.locator("#response").press("Enter")
    page.wait_for_url(lambda url: "/mark/" in url and url != first)
    given = lead.get(f"/api/assignments/{first.rpartition('/')[2]}")
    told = lead.get(f"/api/lead/items/{given['item']['id']}/history")
    names = {row["id"]: row["by"] for row in told["assignments"]}
    people = {row["id"]: row["name"] for row in lead.get("/api/lead/overview")["people"]}
    assert told["origin"]["why"] == "The year is not in the source."
    assert people[told["origin"]["by"]] == "Ines"
    sources = told["origin"]["sources"]
    assert (sources[0]["start"], sources[0]["type"]) == (0, "entity")
    assert [[people[names[id_]] for id_ in row["assignments"]] for row in sources] == [["Ali", "Cy"], []]
    second = page.url
    page.wait_for_selector(".bar")
    page.locator("#response").press("d")
    page.wait_for_url(lambda url: "/mark/" in url and url not in {first, second})
    assert lead.get(f"/api/assignments/{second.rpartition('/')[2]}")["state"] == "withdrawn"
    page.wait_for_selector(".bar")
    page.locator("#response").press("m")
    expect(page.locator("#votes-open")).to_have_text("0 still to decide")
    assert states() == ["taken", "taken"]  # all gave the one, and two of three the other
    page.locator(".sync.saved").wait_for()
    lead.go(f"/lead/items/{given['item']['id']}", ".events")
    marks = [
        " ".join(text.split())
        for text in page.locator(".side.known", has_text="Final labels").locator("li").all_inner_texts()
    ]
    assert [mark.endswith(who) for mark, who in zip(marks, ("Ali, Cy", "added"), strict=True)] == [True, True]
    assert lead.trouble == []


def test_a_history_holds_what_happened_and_what_was_said_then(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/items", "tbody tr")
    assert page.locator("tbody tr").count() == len(lead.get("/api/lead/items")["items"])
    page.get_by_label("Search").fill("item-ar-0")
    page.get_by_label("Search").press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody a").click()
    page.wait_for_selector(".events")
    said = page.locator(".event b").all_inner_texts()
    assert said.count("Submitted") == 2
    assert "Assigned" in said
    page.locator(".event summary").first.click()
    assert page.locator(".event details[open] q").all_inner_texts() == [TEXTS["ar"][0:6]]
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("/lead/items?search=item-ar-0")  # the address keeps what was asked for
    expect(page.get_by_label("Search")).to_have_value("item-ar-0")


def test_many_items_are_chosen_assigned_and_excluded(house: House) -> None:
    kim, lead = house.person("Kim"), house.person("Ines", "lead")
    page = lead.go("/lead/items?language=de&role=normal&sort=key&descending=true", "tbody tr")
    keys = page.locator("tbody th a").all_inner_texts()
    assert keys == sorted(keys, reverse=True)
    page.get_by_label(f"Select {keys[-1]}").check()
    page.get_by_role("group", name="Selected: 1").get_by_label("Person").select_option("Kim")
    _button(page, "Assign")
    page.get_by_text("Items changed: 1.").wait_for()
    expect(page.get_by_role("row", name=re.compile(re.escape(keys[-1])))).to_contain_text("Kim Open".replace(" ", ""))
    given = kim.post("/api/next")["assignment"]
    assert lead.get(f"/api/lead/items/{given['item']['id']}/history")["key"] == keys[-1]
    page.get_by_label("Select all on this page").check()
    _button(page, "Exclude")
    page.get_by_role("button", name="Yes").click()
    page.get_by_text(f"Items changed: {len(keys)}.").wait_for()
    expect(page.locator("tbody tr")).to_have_count(0)
    page.get_by_label("Use").select_option("Excluded")
    expect(page.locator("tbody tr")).to_have_count(len(keys))
    assert "role=excluded" in page.url
    page.get_by_role("link", name="Items", exact=True).click()  # the tab shows all again
    expect(page.get_by_label("Use")).to_have_value("")
    assert lead.trouble == []


def test_a_batch_is_checked_on_request(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/batches", ".card")
    batch = page.locator(".card").first
    batch.get_by_role("button", name=re.compile("Begin the check")).click()
    sure = batch.get_by_role("button", name="Yes")
    batch.get_by_text("Being checked").or_(sure).first.wait_for()
    if sure.is_visible():
        sure.click()
    batch.get_by_text("Being checked").wait_for()
    assert lead.get("/api/lead/overview")["batches"][0]["state"] == "validating"
    assert lead.trouble == []


def test_every_export_can_be_downloaded(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/exports", ".card")
    links = [link.get_attribute("href") for link in page.locator("a.button").all()]
    assert len(links) == 5
    for link in links:
        answer = lead.context.request.get(f"{house.url}{link}")
        assert answer.ok, (link, answer.text())
        assert "attachment" in answer.headers["content-disposition"]
        assert answer.body()


def test_rates_are_those_of_the_server(house: House) -> None:
    lead = _worked(house)
    page = lead.go("/lead/rates", "table")
    told = lead.get("/api/lead/rates")
    table = page.get_by_role("region", name="Rates")
    assert table.locator("tbody th").all_inner_texts() == ["Arabic", "German"]
    steps = [row["steps"][-1] if row["steps"] else {"rate": None, "reasons": []} for row in told["languages"]]
    form = ["({:.1%}?)" if step["reasons"] else "{:.1%}" for step in steps]  # an unreliable rate looks so
    shown = table.locator("tbody td:nth-of-type(2)").all_inner_texts()
    rates = [step["rate"] for step in steps]
    assert shown == ["–" if rate is None else f.format(rate) for f, rate in zip(form, rates, strict=True)]
    expect(page.get_by_text("Target: at most ±2.0%.")).to_be_visible()
    for name in table.locator("tbody th").all():  # as "Thailändisch" was on a phone
        expect(name).to_have_css("overflow-wrap", "normal")
    assert lead.trouble == []
