"""The report of a study as a file: what stands in it, and what must not look like a figure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_figures import LANGUAGES, MODELS, study_figures, two_profiles
from study_page import Page, data_of, page_of

from veriglot.records import Prediction, Rate, Reliability, Sample, Span, Status
from veriglot.report.charts import Axis, HeatScale
from veriglot.report.study_page import write_study
from veriglot.report.text_layout import percent
from veriglot.study.results import Average, Example, StudyResults

if TYPE_CHECKING:
    from pathlib import Path

LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "manifest", "style"}
EVIL = "</script><img src=http://127.0.0.1:9/x onerror=alert(1)><!--&lt;\u2028\"'`${1}|\\"
ODD = 0.77731


def with_rate(results: StudyResults, model: str, language: str, **changes: Any) -> StudyResults:
    """The same results, with the rate of one cell by the study's estimator changed."""

    def changed(rate: Rate) -> Rate:
        return msgspec.structs.replace(rate, **changes)

    cells = [
        msgspec.structs.replace(cell, rates=(changed(cell.rates[0]), *cell.rates[1:]))
        if (cell.model, cell.language) == (model, language)
        else cell
        for cell in results.cells
    ]
    return msgspec.structs.replace(results, cells=tuple(cells))


def test_every_cell_has_rate_interval_and_coverage(page: Page) -> None:
    results = study_figures()
    view = page.root.all("div", "view")[0]
    cells = {node.attrs["data-cell"]: node for node in view.all("td", "cell")}
    assert len(cells) == len(MODELS) * len(LANGUAGES)
    heads = [node.text for node in view.all("thead")[0].all("th")][1:-1]
    rows = [row.all("th")[0].text.rpartition(" ")[2] for row in view.all("tbody")[0].all("tr")]
    assert heads == [average.name for average in results.by_model]
    assert rows == [average.name for average in results.by_language]
    for cell in results.cells:
        rate, node = cell.rates[0], cells[f"{heads.index(cell.model)}-{rows.index(cell.language)}"]
        assert f"coverage {percent(rate.coverage, 0)}" in node.text
        if rate.status is Reliability.OK:
            assert rate.low is not None
            assert node.all("b")[0].text == percent(rate.rate)
            assert node.all("span", "interval")[0].text.startswith(f"{100 * rate.low:.1f}–")
            assert any(name.startswith("heat-") for name in node.classes)
        else:
            assert "hatched" in node.classes
            assert not any(name.startswith("heat-") for name in node.classes)
            assert node.all("span", "flag")[0].text == "unreliable"
            assert not node.all("b")


def test_an_unreliable_rate_is_nowhere_a_plain_number(tmp_path: Path) -> None:
    reason = "The profile cannot tell."
    results = with_rate(
        study_figures(), "lark-9b", "de", rate=ODD, low=0.70001, high=0.88801, status=Reliability.UNRELIABLE,
        reason=reason,
    )  # fmt: skip
    page = page_of(results, tmp_path)
    data = data_of(page)
    told = [node.attrs.get(name) or "" for node in page.root.all() for name in ("title", "aria-label")]
    shown = "\n".join([page.root.all("main")[0].text, json.dumps(data["cells"]), *told])
    found = [shown[max(0, at.start() - 1) : at.end() + 3] for at in re.finditer(r"77\.7", shown)]
    assert len(found) >= 5, "it is shown where it belongs: cell, panels, reasons, details, titles of charts"
    assert set(found) == {"(77.7%?)"}
    assert "88.8" not in shown, "no interval stands beside it"
    assert reason in page.text
    for name, table in data["tables"].items():
        lines = [line for line in table["csv"].splitlines() if str(ODD) in line]
        head = table["csv"].splitlines()[0].split(",")
        for line in lines:
            assert name == "rates"
            assert line.split(",")[head.index("rate")] == ""
            assert line.split(",")[head.index("unreliable_rate")] == str(ODD)


def test_unreliable_marks_are_drawn_hollow(page: Page) -> None:
    results = study_figures()
    doubtful = [
        cell.rates[0] for cell in results.cells
        if cell.rates[0].status is Reliability.UNRELIABLE and cell.rates[0].rate is not None
    ]  # fmt: skip
    panels = next(node for node in page.root.all("section") if node.attrs["id"] == "panels")
    assert len(panels.all("circle", "doubtful")) == 2 * len(doubtful), "once by language, once by model"
    assert len(panels.all("circle")) == 2 * sum(cell.rates[0].rate is not None for cell in results.cells)


def test_nothing_is_loaded_and_only_its_own_script_runs(page: Page) -> None:
    for node in page.root.all():
        assert not LOADING & node.attrs.keys(), node.attrs
        assert not any(name.startswith("on") for name in node.attrs), node.attrs
        for name in ("href", "xlink:href"):
            assert (node.attrs.get(name) or "#").startswith(("#", "data:,")), node.attrs
    policy = next(n.attrs["content"] for n in page.root.all("meta") if n.attrs.get("http-equiv")) or ""
    script = page.root.all("script")[-1].text
    style = page.root.all("style")[0].text
    for kind, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "url(" not in style
    assert "@import" not in style


def test_it_can_be_used_with_keys_and_a_screen_reader(page: Page) -> None:
    ids = [node.attrs["id"] for node in page.root.all() if "id" in node.attrs]
    assert len(set(ids)) == len(ids)
    for node in page.root.all():
        for name in ("aria-labelledby", "aria-controls", "for"):
            assert node.attrs.get(name) in {None, *ids}
        if node.tag == "a":
            assert (node.attrs["href"] or "").removeprefix("#") in ids
        if node.tag == "svg":
            assert node.attrs.get("aria-hidden") == "true" or node.attrs.get("aria-label"), "a picture has words"
        if node.tag == "table":
            assert node.all("caption"), node.text[:80]
            assert node.all("caption")[0].text
        if node.tag == "th":
            assert node.attrs.get("scope") in {"col", "row"}
        if node.tag in {"button", "summary", "select"}:
            assert node.text.strip()
    levels = [int(node.tag[1]) for node in page.root.all() if node.tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert [node.tag for node in page.root.all("main")] == ["main"]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    model = msgspec.structs.replace(MODELS[0], name=EVIL, family=EVIL, settings={EVIL: EVIL})
    results = study_figures((model, *MODELS[1:]))
    sample = Sample(EVIL, EVIL, language=EVIL, question=EVIL)
    prediction = Prediction(EVIL, Status.SCORED, EVIL, 0.5, (Span(0, 9, EVIL, 0.5),))
    results = msgspec.structs.replace(
        results, title=EVIL, signature=EVIL, methods=(EVIL,), assumptions=(EVIL,), warnings=(EVIL,), detectors=(EVIL,),
        examples=(Example(sample, prediction),),
    )  # fmt: skip
    page = page_of(results, tmp_path)
    assert not page.root.all("img")
    assert [node.attrs.get("id") for node in page.root.all("script")] == ["data", None]
    assert page.root.all("h1")[0].text == EVIL.replace("\u2028", "\n")
    assert data_of(page)["tables"]["models"]["csv"].count("</script>") == 1


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_study(study_figures(), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.parametrize(
    "bare",
    [
        {"cells": (), "by_model": (), "by_language": (), "ranks": (), "comparisons": (), "correlations": ()},
        {"models": (), "languages": (), "cells": (), "by_model": (), "by_language": (), "ranks": (), "comparisons": ()},
        {"examples": (), "warnings": (), "assumptions": (), "methods": (), "detectors": ()},
        {"comparisons": (), "ranks": (), "correlations": ()},
        {"estimator": "raw"},
        {"estimator": "ppi"},
    ],
    ids=["no cells", "nothing at all", "no words", "no tests", "raw is the estimator", "an estimator without rates"],
)
def test_a_study_that_lacks_something_still_makes_a_page(bare: dict[str, Any], tmp_path: Path) -> None:
    results = msgspec.structs.replace(
        study_figures(), **bare, overall=Average("*", None, None, 0, 0)
    )  # fmt: skip
    page = page_of(results, tmp_path)
    assert page.root.all("h1")[0].text == results.title
    assert "NaN" not in page.text
    assert ">None<" not in page.text


def test_one_model_in_one_language(tmp_path: Path) -> None:
    results = study_figures(MODELS[1:2], ("de",))
    page = page_of(results, tmp_path)
    assert len(page.root.all("div", "view")[0].all("td", "cell")) == 1


def test_models_that_no_test_compares_say_so(tmp_path: Path) -> None:
    said, results = "No test compares models: a test needs two with reliable rates in one language.", study_figures()
    assert said not in page_of(results, tmp_path).text
    assert said in page_of(msgspec.structs.replace(results, comparisons=(), ranks=()), tmp_path).text


@pytest.mark.parametrize("languages", [LANGUAGES, ("de", "fr", "zh-Hans")], ids=["unlike means", "alike means"])
def test_no_superlative_without_the_data_for_it(languages: tuple[str, ...], tmp_path: Path) -> None:
    results = study_figures(MODELS, languages)
    told = page_of(results, tmp_path).root.all("ul", "findings")[0].text
    assert "the data do not exclude" in told
    clear = tuple(msgspec.structs.replace(rank, low=rank.rank, high=rank.rank) for rank in results.ranks)
    ranked = msgspec.structs.replace(results, ranks=clear)
    assert "hallucinates least" not in page_of(ranked, tmp_path).root.all("ul", "findings")[0].text, "no test says so"
    tested = tuple(msgspec.structs.replace(row, p_adjusted=0.001) for row in results.comparisons)
    settled = page_of(msgspec.structs.replace(ranked, comparisons=tested), tmp_path).root.all("ul", "findings")[0].text
    assert "hallucinates least" in settled
    assert "the data do not exclude" not in settled


def test_means_of_unlike_languages_order_no_models(tmp_path: Path) -> None:
    """A model whose hard languages are left out has a low mean: findings go by ranks over the shared languages."""
    results = study_figures()
    reliable = {
        model.name: {c.language for c in results.cells if c.model == model.name and c.rates[0].status == "ok"}
        for model in MODELS
    }
    shared = set.intersection(*reliable.values())
    assert 0 < len(shared) < max(map(len, reliable.values())) < len(LANGUAGES)
    page = page_of(results, tmp_path)
    told = page.root.all("ul", "findings")[0].text
    assert "not of the same languages" in told
    assert f"over the {len(shared)} languages with a reliable rate of every model" in told
    assert not re.search(r"mean rate,? [\d(]", told)
    captions = [node.text for node in page.root.all("caption")]
    assert any(f"Rank over the {len(shared)} languages with" in text for text in captions)
    alike = page_of(study_figures(MODELS, ("de", "fr", "zh-Hans")), tmp_path)
    assert "not of the same languages" not in alike.root.all("ul", "findings")[0].text
    assert "Rank over all languages" in [node.text for node in alike.root.all("caption")]


def test_two_profiles_have_a_section_with_a_row_for_each_cell(tmp_path: Path) -> None:
    sections = {node.attrs.get("id"): node for node in page_of(two_profiles(), tmp_path).root.all("section")}
    assert "the largest is +3.0" in sections["two-profiles"].text
    assert len(sections["two-profiles"].all("tr")) == 1 + 3
    alone = {node.attrs.get("id") for node in page_of(study_figures(), tmp_path).root.all("section")}
    assert sections.keys() - alone == {"two-profiles"}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
@settings(max_examples=200)
def test_scales_hold_every_rate(rates: list[float]) -> None:
    axis = Axis.of(rates)
    scale = HeatScale.of(rates)
    assert 2 <= len(axis.ticks) <= 9
    assert scale.classes <= 10
    for rate in rates:
        assert not axis.beyond(rate)
        assert 0 <= float(axis.at(rate).rstrip("%")) <= 100
        assert 0 <= scale.step(rate) <= 9
    ordered = sorted(rates)
    assert [scale.step(rate) for rate in ordered] == sorted(scale.step(rate) for rate in rates)


@given(st.floats(0, 1))
def test_a_share_is_never_written_as_nothing_or_everything_that_it_is_not(share: float) -> None:
    text = percent(share)
    assert (text == "0.0%") == (share == 0)
    assert (text == "100.0%") == (share == 1)
