"""Scorers whose package runs in a Python environment of its own: COMET, LASER, BLASER, and engines of anyone's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError
from veriglot.hub.checkpoints import check_licence
from veriglot.hub.registry import offline
from veriglot.judging.base import NotScored
from veriglot.pipeline.companion import Answer, Companion, python_of
from veriglot.records import Direction, Status
from veriglot.records.languages import tag_of, translation_codes
from veriglot.scorers.base import Measured, Pair, PairScorer, answered, codes_of, pair_languages
from veriglot.signatures import checkpoint_revision, digest, file_sha256, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]


__all__ = []


class _CompanionScorer(PairScorer):
    """Pairs go to an engine as rows `{"source", "response", "source_language", "language", "question"}`.

    The process starts with the scorer. A row over which it dies twice is `failed`; the others get their scores.
    """

    def _open(self, python: str | Path, engine: str | Path, options: Json, about: Json, **timeouts: float) -> None:
        for what, seconds in timeouts.items():
            if not seconds > 0:
                raise UsageError(f"{what} is a number of seconds above 0, not {seconds}.")

        self._companion = Companion(python, engine, options, **timeouts)
        versions = {name.replace("-", "_"): version for name, version in self._companion.packages.items()}
        details = self._companion.about
        folder = details.get("folder")
        about["revision"] = about.pop("revision", None) if folder is None else checkpoint_revision(folder)
        self.signature = signature(scorer=self.name, **about, device=details.get("device"), **versions)

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | NotScored]:
        """See `PairScorer`."""
        return answered([self._row(pair) for pair in pairs], lambda asked: map(self._read, self._companion.ask(asked)))

    def _row(self, pair: Pair) -> Json | NotScored:
        """What the engine is given of a pair; or why it is not asked."""
        return {"source": pair.source, "response": pair.response}

    def _read(self, answer: Answer) -> Measured | NotScored:
        if answer.value is None:
            return NotScored(Status(answer.status), answer.error or "")
        return Measured(answer.value, answer.parts)

    def close(self) -> None:
        """Have the process leave; scoring starts another."""
        self._companion.close()


class Comet(_CompanionScorer):
    """The score of a COMET model of quality estimation, without a reference: COMET-QE, CometKiwi, XCOMET.

    Higher is better. CometKiwi and XCOMET are trained to give 0 to 1; COMET-QE (Rei et al. 2021) gives numbers around 0
    without bounds. `parts` of an XCOMET holds `source` (the regression) and `mqm` (from its error spans). A pair that
    the published code would cut off is `too_long`. Runs unbabel-comet in the environment `comet`.

    Args:
        model: a folder with `hparams.yaml` and `checkpoints/`, a `.ckpt` file inside one, or a name on the hub.
        encoder: folder of the encoder that the model was made from, where the one that it names is not here.
        python: interpreter, or folder, of the environment; None for `VERIGLOT_ENV_COMET`, else the one in the cache.
        device: such as `cpu` or `cuda:0`; None for CUDA if it is there.
        batch_size: pairs at a time.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        UsageError: the environment is not here; the remedy is the commands that make it.
        WeightsError: the model cannot be loaded, or needs references.
        WeightsError: its licence has to be accepted first.
        VeriglotError: the process does not start.
    """

    name = "comet@1"

    def __init__(
        self,
        model: str,
        *,
        encoder: str | None = None,
        python: str | None = None,
        device: str | None = None,
        batch_size: int = 8,
        timeout: float = 1800.0,
        start_timeout: float = 1800.0,
        accept_licence: bool = False,
    ) -> None:
        check_licence(model, accepted=accept_licence)
        about = {"model": model, "encoder": encoder}
        given = {**about, "device": device, "batch_size": batch_size, "offline": offline()}
        self._open(python_of("comet", python), "comet", given, about, start_timeout=start_timeout, timeout=timeout)


class Laser(_CompanionScorer):
    """The cosine of LASER2 or LASER3 sentence embeddings (Heffernan et al. 2022) of source and translation; -1 to 1.

    Higher is better. Runs laser_encoders in the environment `laser`; nothing is fetched.

    Args:
        model: folder with `laser2.pt`, `laser2.spm`, and what LASER3 files are wanted.
        encoder: the file's name, without its suffix, for the response: `laser2`, or `laser3-hau_Latn.v1`.
        source_encoder: the same for the source; None for the same file.
        python, device, timeout, start_timeout: as for `Comet`; of the environment `laser`.

    Raises:
        UsageError, WeightsError, VeriglotError: as for `Comet`.
    """

    name = "laser@1"

    def __init__(
        self,
        model: str,
        *,
        encoder: str = "laser2",
        source_encoder: str | None = None,
        python: str | None = None,
        device: str | None = None,
        timeout: float = 600.0,
        start_timeout: float = 600.0,
        accept_licence: bool = False,
    ) -> None:
        check_licence(model, accepted=accept_licence)
        given = {"model": model, "encoder": encoder, "source_encoder": source_encoder, "device": device}
        about = {"model": model, "revision": checkpoint_revision(model), "encoder": encoder, "source": source_encoder}
        self._open(python_of("laser", python), "laser", given, about, start_timeout=start_timeout, timeout=timeout)


class Blaser(_CompanionScorer):
    """BLASER 2.0 QE (Chen et al. 2023) on SONAR embeddings; by its authors' scale 1 to 5, higher is better.

    SONAR is told the languages, in FLORES-200 codes; those that are not given are identified. Runs
    sonar-space in the environment `sonar`.

    Args:
        model: a card of that package, a `model.pt`, or the folder that holds it.
        encoder: card of the text encoder.
        codes: languages in the encoder's codes where our table has none, `TAG=CODE` parted by commas.
        python, device, timeout, start_timeout, accept_licence: as for `Comet`; of the environment `sonar`.

    Raises:
        UsageError, WeightsError, VeriglotError: as for `Comet`.
        UsageError: codes that are none.
    """

    name = "blaser-2.0-qe@1"

    def __init__(
        self,
        model: str = "blaser_2_0_qe",
        *,
        encoder: str = "text_sonar_basic_encoder",
        codes: str = "",
        python: str | None = None,
        device: str | None = None,
        timeout: float = 1800.0,
        start_timeout: float = 1800.0,
        accept_licence: bool = False,
    ) -> None:
        check_licence(model, accepted=accept_licence)
        self._codes = codes_of(codes)
        given = {
            "model": model, "encoder": encoder, "tokenizer": encoder, "device": device, "offline": offline(),
        }  # fmt: skip
        about = {"model": model, "revision": checkpoint_revision(model), "encoder": encoder}
        self._open(python_of("sonar", python), "sonar", given, about, start_timeout=start_timeout, timeout=timeout)

    def _row(self, pair: Pair) -> Json | NotScored:
        """Without both languages' codes there is nothing to ask."""
        tags = pair_languages(pair)
        codes = [self._codes.get(tag or "") or translation_codes()["nllb"].get(tag_of(tag) or "") for tag in tags]
        if None in codes:
            side, tag = ("source", tags[0]) if codes[0] is None else ("response", tags[1])
            reason = f"SONAR has to be told the language of the {side}, and there is no code for {tag or 'unknown'}"
            return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        return {"source": pair.source, "response": pair.response, "source_language": codes[0], "language": codes[1]}


class Process(_CompanionScorer):
    """The number of an engine of your own, in any Python environment: a file with a class `Engine`.

    Args:
        engine: the file; docs/neural_scorers.md says what its class has to have.
        python: the interpreter, or the folder of its environment.
        options: what its constructor is given; the signature holds a digest of them.
        higher_is_better: which way its numbers go.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.

    Raises:
        UsageError: the file or the interpreter is not there.
        WeightsError: the engine refuses to start; VeriglotError: it cannot.
    """

    name = "process@1"

    def __init__(
        self,
        engine: str,
        *,
        python: str,
        options: Json | None = None,
        higher_is_better: bool = True,
        timeout: float = 600.0,
        start_timeout: float = 600.0,
    ) -> None:
        self.direction = Direction.HIGHER_IS_BETTER if higher_is_better else Direction.HIGHER_IS_WORSE
        file = Path(engine).expanduser()
        if not file.is_file():
            raise UsageError(f"There is no engine {engine!r}.", "Give a Python file with a class Engine.")
        about = {"engine": file.stem, "revision": file_sha256(file)[:16]}
        if options:  # a digest: what they hold, such as keys, is nobody else's business
            about["options"] = digest([msgspec.json.encode(options, order="sorted")])[:12]
        self._open(python, file, options or {}, about, start_timeout=start_timeout, timeout=timeout)

    def _row(self, pair: Pair) -> Json:
        return pair._asdict()
