"""`veriglot doctor`: what is installed, what each extra would add, which models load."""

from __future__ import annotations

import inspect
import platform
import re
import sys
import time
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from veriglot.cli.command import command
from veriglot.cli.console import print_json
from veriglot.detectors.registry import DETECTORS
from veriglot.errors import MissingExtraError, VeriglotError
from veriglot.plugins import read_package_data
from veriglot.records import Evidence, Sample, Status
from veriglot.signatures import __version__

Json = dict[str, Any]

_REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?(?P<bound>[^;]*)(;.*extra == ['\"](?P<extra>[^'\"]+))?"
)
_COLLECTIONS = {"all", "dev"}
_OK, _MISSING, _NEEDS_EXTRA, _NEEDS_MODEL = "ok", "missing", "needs an extra", "needs a model"
_NEEDS_OPTION = "needs an argument"
_FINE = {_OK, _NEEDS_EXTRA, _NEEDS_MODEL, _NEEDS_OPTION}  # optional parts may be missing


@command
def doctor(json: bool = False) -> int:
    """Show what is installed, what each extra would add, and which models load.

    Exits with 1 if something that the core needs is missing or a detector does not load.
    """
    report = examine()
    if json:
        print_json(report)
    else:
        _show(report)
    return 0 if report["ok"] else 1


def examine() -> Json:
    """All information of `veriglot doctor`, as plain data."""
    from veriglot.pipeline.engine import cores

    packages = [_package(line) for line in requires("veriglot") or ()]
    core = [package for extra, package in packages if extra is None]
    names = sorted({extra for extra, _ in packages if extra is not None} - _COLLECTIONS)
    parts = {name: [package for extra, package in packages if extra == name] for name in names}
    gives = read_package_data(__package__, "extras.toml", dict[str, str])
    extras = {
        name: {
            "gives": gives.get(name, ""),
            "packages": needed,
            "complete": all(package["status"] == _OK for package in needed),
            "install": f"pip install 'veriglot[{name}]'",
        }
        for name, needed in parts.items()
    }
    detectors = [_detector(name) for name in DETECTORS.names()]
    weights = _weights()
    return {
        "veriglot": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cores": cores(),
        "core": core,
        "extras": extras,
        "detectors": detectors,
        "plugins": _plugins(),
        "weights": weights,
        "ok": "problem" not in weights and all(entry["status"] in _FINE for entry in [*core, *detectors]),
    }


def _package(line: str) -> tuple[str | None, Json]:
    """A line of Veriglot's requirements: its extra, and the package with its installed version."""
    match = _REQUIREMENT.match(line)
    assert match is not None, line
    name = match["name"]
    try:
        installed = version(name)
    except PackageNotFoundError:
        installed = None
    status = _OK if installed else _MISSING
    needs = (match["bound"] or "").strip()
    return match["extra"], {"name": name, "version": installed, "needs": needs, "status": status}


def _detector(name: str) -> Json:
    """Create the detector and have it judge one sample, because a model may load but not run."""
    from veriglot.cli.detectors import load
    from veriglot.hub.registry import MissingWeightsError

    began = time.perf_counter()
    try:
        if problem := _needs(name):
            return {"name": name, "status": _NEEDS_OPTION, "problem": problem}
        detector = load(name)
        evidence = (Evidence("The mill was built in 1874."),)
        (prediction,) = detector.predict([Sample("s", "It was built in 1901.", evidence=evidence, language="en")])
    except MissingExtraError as error:
        return {"name": name, "status": _NEEDS_EXTRA, "problem": str(error)}
    except MissingWeightsError as error:
        return {"name": name, "status": _NEEDS_MODEL, "problem": str(error)}
    except Exception as error:
        return {"name": name, "status": "broken", "problem": f"{type(error).__name__}: {error}"}
    if prediction.status is not Status.SCORED:
        return {"name": name, "status": "broken", "problem": f"{prediction.status}: {prediction.reason}"}
    seconds = round(time.perf_counter() - began, 3)
    chosen = detector.name  # `auto` shows its choices here
    return {"name": name, "status": _OK, "made": chosen, "seconds": seconds, "signature": detector.signature}


def _needs(name: str) -> str | None:
    """What a detector needs before it can be created; None if its name is enough."""
    entry, parameters = DETECTORS.entry(name), inspect.signature(DETECTORS.load(name)).parameters
    if entry.argument is not None:
        return f"{name}:{entry.argument.upper()}; {entry.summary}"
    missing = [
        option
        for option, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY
    ]
    return f"--set {missing[0]}=...; {entry.summary}" if missing else None


def _plugins() -> list[Json]:
    """Plug-ins from other packages, by kind."""
    from veriglot.encoders.base import ENCODERS
    from veriglot.judging.nli import ENTAILMENTS
    from veriglot.llm.registry import CLIENTS
    from veriglot.scorers.registry import SCORERS

    return [
        {"kind": table.kind, **plugin}
        for table in (DETECTORS, SCORERS, CLIENTS, ENCODERS, ENTAILMENTS)
        for plugin in table.third_party()
    ]


def _weights() -> Json:
    """The models on this machine. A missing one is not an error: only features with its name need it."""
    from veriglot.hub import registry as weights

    try:
        models = weights.listing()
    except VeriglotError as error:  # from a registry of the user
        return {"problem": str(error)}
    return {
        "folder": str(weights.folder()),
        "offline": weights.offline(),
        "models": [
            {
                "name": model.name,
                "status": model.state,
                "bytes": model.bytes,
                "path": model.path,
                "third_party": model.third_party,
                "get": f"veriglot models get {model.name}",
            }
            for model in models
        ],
    }


def _line(name: str, status: str, text: str) -> None:
    print(f"  {name:<20} {status:<15} {text}")


def _show(report: Json) -> None:
    print(f"veriglot {report['veriglot']}, Python {report['python']}, {report['cores']} cores, {report['platform']}")
    print("\nCore")
    _show_packages(report["core"])
    for name, extra in report["extras"].items():
        state = "installed" if extra["complete"] else f"not installed; type: {extra['install']}"
        print(f"\nExtra {name}: {extra['gives']} ({state})")
        _show_packages(extra["packages"])
    print("\nDetectors")
    for detector in report["detectors"]:
        description = detector.get("problem") or f"{detector['made']} loads and judges in {detector['seconds']:.2f} s"
        _line(detector["name"], detector["status"], description)
    if report["plugins"]:
        print("\nPlug-ins")
    for plugin in report["plugins"]:
        description = "has no effect: Veriglot's own of this name wins" if plugin["hidden"] else plugin["target"]
        _line(plugin["name"], plugin["kind"], f"{plugin['package']}, {description}")
    weights = report["weights"]
    if "problem" in weights:
        print(f"\nModels\n  {weights['problem']}")
        return
    print(f"\nModels in {weights['folder']}{' (VERIGLOT_OFFLINE is set)' if weights['offline'] else ''}")
    for model in weights["models"]:
        location = model["path"] or f"{model['bytes'] / 1e6:,.1f} MB; type: {model['get']}"
        _line(model["name"], model["status"], location)


def _show_packages(packages: list[Json]) -> None:
    for package in packages:
        _line(package["name"], package["version"] or "missing", f"needs {package['needs'] or 'any version'}")
