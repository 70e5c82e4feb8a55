"""Each example of examples/integrations, run on the real packages, in an environment of their own, without network."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from own_environment import environment_of, install, run

if TYPE_CHECKING:
    import subprocess

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
EXAMPLES = sorted((ROOT / "examples" / "integrations").glob("in_*.py"))
SILENT = {  # no telemetry
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "RAGAS_DO_NOT_TRACK": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}

# What the other side of docs/coming_from.md needs around it: imports, and a language model that finds the year wrong.
OTHER_SIDES = {
    "Ragas": """
import asyncio, json
from langchain_core.outputs import Generation, LLMResult
from ragas import SingleTurnSample
from ragas.llms.base import BaseRagasLLM
from ragas.metrics import Faithfulness

class Scripted(BaseRagasLLM):
    async def agenerate_text(self, prompt, *given, **named):
        judged = [{"statement": answer, "reason": "another year", "verdict": 0}]
        reply = {"statements": judged if "verdict" in prompt.to_string() else [answer]}
        return LLMResult(generations=[[Generation(text=json.dumps(reply))]])

    def generate_text(self, prompt, *given, **named):
        raise NotImplementedError

    def is_finished(self, response):
        return True

async def ask(llm):
    BLOCK
    return faithfulness

assert asyncio.run(ask(Scripted())) == 0
""",
    "DeepEval": """
from deepeval import assert_test
from deepeval.metrics import FaithfulnessMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase

class Scripted(DeepEvalBaseLLM):
    def load_model(self):
        return self

    def get_model_name(self):
        return "scripted"

    def generate(self, prompt, schema=None):
        verdicts = [{"verdict": "no", "reason": "another year"}]
        given = {"truths": [context], "claims": [answer], "verdicts": verdicts, "reason": "another year"}
        return schema.model_validate({name: given[name] for name in schema.model_fields})

    async def a_generate(self, prompt, schema=None):
        return self.generate(prompt, schema)

try:
    BLOCK
except AssertionError as error:
    assert "Faithfulness (score: 0.0, threshold: 0.7" in str(error)
else:
    raise SystemExit("it passed")
""",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's Python, with Veriglot as it is now."""
    python = environment_of(REQUIREMENTS, tmp_path_factory.mktemp("download"))
    wheels = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    install(python, "--force-reinstall", *wheels.iterdir())
    return python


def run_example(python: Path, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command, from an empty folder; fails where anything beyond loopback was asked for."""
    log = folder / "tried.txt"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(HERE / "closed_network"),
        "CLOSED_NETWORK_LOG": str(log),
        **SILENT,
    }
    done = run(python, *arguments, cwd=folder, env=environment, timeout=300)
    assert not log.exists(), log.read_text("utf-8")
    return done


def test_the_packages_fit_together(python: Path) -> None:
    done = run(python, "-m", "pip", "check")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_on_its_package(path: Path, python: Path, tmp_path: Path) -> None:
    copied = shutil.copy(path, tmp_path)  # out of reach of this project's settings of pytest
    runner = ["-m", "pytest", "-p", "no:cacheprovider"] if path.stem == "in_pytest" else []
    done = run_example(python, tmp_path, *runner, copied)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]


def test_the_network_is_closed(python: Path, tmp_path: Path) -> None:
    code = "import urllib.request; urllib.request.urlopen('http://192.0.2.1/')"
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        run_example(python, tmp_path, "-c", code)


def test_a_failure_in_pytest_shows_the_spans_and_no_code_of_ours(python: Path, tmp_path: Path) -> None:
    test = "def test_answer(grounded):\n    grounded('It opened in 1907.', 'It opened in 1879.')\n"
    (tmp_path / "test_answer.py").write_text(test, "utf-8")
    done = run_example(python, tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "test_answer.py")
    assert done.returncode == 1
    assert "AssertionError: 1 unsupported span in the response, 0 allowed:" in done.stdout
    assert "It opened in ⟦1907⟧." in done.stdout
    assert "evidence: It opened in ⟦1879⟧" in done.stdout
    assert "src/veriglot/pytest.py" not in done.stdout
    assert "raise AssertionError" not in done.stdout


def test_the_settings_of_pytest_choose_the_detector(python: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nveriglot_detector = no-such\n", "utf-8")
    (tmp_path / "test_answer.py").write_text("def test_answer(grounded):\n    grounded('a', 'a')\n", "utf-8")
    done = run_example(python, tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "test_answer.py")
    assert "no detector named 'no-such'" in done.stdout


def test_adapters_survive_pickling_and_refuse_wrong_options(python: Path, tmp_path: Path) -> None:
    code = (
        "import pickle\n"
        "from veriglot.errors import UsageError\n"
        "from veriglot import integrations\n"
        "names = ['llama_index_evaluator', 'haystack_checker', 'ragas_metric', 'langchain_runnable']\n"
        "for make in [getattr(integrations, name) for name in names]:\n"
        "    made = make()\n"
        "    again = pickle.loads(pickle.dumps(made))\n"
        "    assert type(again) is type(made)\n"
        "    try:\n"
        "        make(strictness='severe')\n"
        "    except UsageError:\n"
        "        continue\n"
        "    raise SystemExit(f'{make} takes any strictness')\n"
        "row = {'answer': 'It opened in 1907.', 'context': 'It opened in 1879.'}\n"
        "assert again.invoke(row)['grounding']['verdict'] == 'unsupported'\n"
    )
    done = run_example(python, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tool", OTHER_SIDES)
def test_the_other_side_of_a_comparison_runs(tool: str, python: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "coming_from.md").read_text("utf-8")
    given = page.partition("```python\n")[2].partition("```")[0]
    block = page.partition(f"\n## {tool}\n")[2].partition("```text\n")[2].partition("```")[0]
    block = block.replace("threshold=0.7", "threshold=0.7, model=Scripted()").replace("\n", "\n    ").strip()
    code = given.replace("import veriglot\n", "") + OTHER_SIDES[tool].replace("BLOCK", block)
    done = run_example(python, tmp_path, "-W", "ignore", "-c", code)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
