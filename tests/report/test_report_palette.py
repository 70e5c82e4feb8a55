"""Colours: one per type, the same in every run, and readable by the AA rule of WCAG 2 (4.5 to 1)."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from veriglot.records.taxonomy import taxonomies
from veriglot.report.palette import palette, slot_of

AA = 4.5
ON_TINT_IN_TERMINAL = "#161616"


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("kind", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(palette().slots))
def test_marks_are_readable(kind: str, name: str) -> None:
    page = palette().pages[kind]
    shades = getattr(palette().slots[name], kind)
    assert contrast(page["ink"], shades.tint) >= AA  # the response's text on a mark at full strength
    for ground in ("paper", "panel", "hover"):
        assert contrast(shades.ink, page[ground]) >= AA  # the type's name


@pytest.mark.parametrize("kind", ["light", "dark"])
def test_pages_are_readable(kind: str) -> None:
    page = palette().pages[kind]
    for text in ("ink", "muted", "accent"):
        for ground in ("paper", "panel", "hover"):
            assert contrast(page[text], page[ground]) >= AA, (text, ground)
    assert contrast(page["warn-ink"], page["warn"]) >= AA
    assert contrast(page["ink"], page["place"]) >= AA


@pytest.mark.parametrize("kind", ["light", "dark"])
def test_heat_is_readable_and_goes_one_way(kind: str) -> None:
    steps = palette().heat[kind]
    assert all(contrast(shades.ink, shades.tint) >= AA for shades in steps)
    values = [luminance(shades.tint) for shades in steps]
    assert values == sorted(values, reverse=kind == "light")
    assert all(abs(a - b) > 0.005 for a, b in pairwise(values)), "no two steps look alike in grey"


@pytest.mark.parametrize("name", sorted(palette().slots))
def test_terminal_marks_are_readable(name: str) -> None:
    assert contrast(ON_TINT_IN_TERMINAL, palette().slots[name].terminal.background) >= 7


def test_every_shipped_type_has_a_slot_of_its_own_taxonomy() -> None:
    for taxonomy in taxonomies().values():
        slots = [palette().types[type_] for type_ in taxonomy.types]
        assert len(set(slots)) == len(slots), taxonomy.name
        assert set(slots) <= palette().slots.keys()


def test_other_types_keep_their_colour_between_runs() -> None:
    names = ["omission", "addition", "mistranslation/minor", "Übersetzung", "错误", ""]
    code = f"from veriglot.report.palette import slot_of; print([slot_of(n) for n in {names!r}])"
    done = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([slot_of(name) for name in names])
    assert {slot_of(name) for name in names} <= set(palette().spare)
    assert len({slot_of(f"type {i}") for i in range(100)}) == len(palette().spare)


def test_case_and_space_do_not_change_a_colour() -> None:
    assert slot_of(" Entity ") == slot_of("entity")
    assert slot_of(None) == palette().untyped
