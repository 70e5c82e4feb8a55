"""Write the names of months of `veriglot.text`: `python tools/build_month_names.py`.

It needs `babel`, which carries the Unicode Common Locale Data Repository (CLDR) and which Veriglot itself does not
need. Run it when a language is added to `fact_rules.json`, or when CLDR moves.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parents[1] / "src" / "veriglot" / "text"
_LOCALES = {"zh": ("zh_Hans",), "yue": ("yue_Hant",), "sr": ("sr_Cyrl", "sr_Latn")}


def _months(locale: Any) -> set[str]:
    forms = set()
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            forms |= {form.casefold().rstrip(".") for form in locale.months[context][width].values()}
    return {form for form in forms if form.isalpha() or any(0x0900 <= ord(c) < 0x0E80 for c in form)}


def _forms_of(tag: str) -> list[str]:
    babel = import_module("babel")
    forms: set[str] = set()
    for name in _LOCALES.get(tag, (tag,)):
        try:
            forms |= _months(babel.Locale.parse(name))
        except (babel.UnknownLocaleError, ValueError):
            continue
    return sorted(forms)


def main() -> None:
    """Write `months.json`: language to its months, casefolded; forms that hold a space or a digit are left out."""
    tags = sorted(json.loads((_DATA / "fact_rules.json").read_text("utf-8")))
    tags.sort(key=lambda tag: tag == "he")  # last: once loaded, babel 2.18 adds its months to those of other languages
    table = {tag: " ".join(_forms_of(tag)) for tag in tags}
    rows = (f"{json.dumps(tag)}: {json.dumps(table[tag], ensure_ascii=False)}" for tag in sorted(table))
    (_DATA / "months.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
