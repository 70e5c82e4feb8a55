"""Scorers whose package runs in its own Python environment: COMET, LASER, BLASER, and engines of users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError
from veriglot.hub.checkpoints import check_licence
from veriglot.hub.registry import offline
from veriglot.judging.base import NotScored
from veriglot.pipeline.external import Answer, ExternalEngine, python_of
from veriglot.records import Direction, Status
from veriglot.records.languages import tag_of, translation_codes
from veriglot.scorers.base import Pair, PairScorer, RawScore, answered, pair_languages, parse_codes
from veriglot.signatures import checkpoint_revision, digest, file_sha256, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]


__all__ = []


class _ExternalScorer(PairScorer):
    """Sends pairs to an engine as rows `{"source", "response", "source_language", "language", "question"}`.

    The process starts with the scorer. A row that crashes it twice is `failed`; the others get their scores.
    """

    def _open(self, python: str | Path, engine: str | Path, options: Json, about: Json, **timeouts: float) -> None:
        for what, seconds in timeouts.items():
            if not seconds > 0:
                raise UsageError(f"{what} is a number of seconds above 0, not {seconds}.")

        self._engine = ExternalEngine(python, engine, options, **timeouts)
        versions = {name.replace("-", "_"): version for name, version in self._engine.packages.items()}
        details = self._engine.about
        folder = details.get("folder")
        about["revision"] = about.pop("revision", None) if folder is None else checkpoint_revision(folder)
        self.signature = signature(scorer=self.name, **about, device=details.get("device"), **versions)

    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """See `PairScorer`."""
        return answered([self._row(pair) for pair in pairs], lambda asked: map(self._read, self._engine.ask(asked)))

    def _row(self, pair: Pair) -> Json | NotScored:
        """The row of a pair for the engine; or why there is none."""
        return {"source": pair.source, "response": pair.response}

    def _read(self, answer: Answer) -> RawScore | NotScored:
        if answer.value is None:
            return NotScored(Status(answer.status), answer.error or "")
        return RawScore(answer.value, answer.parts)

    def close(self) -> None:
        """Stop the process; scoring starts a new one."""
        self._engine.close()


class Comet(_ExternalScorer):
    """The score of a COMET model of quality estimation, without a reference: COMET-QE, CometKiwi, XCOMET.

    Higher is better. CometKiwi and XCOMET are trained for 0 to 1; scores of COMET-QE (Rei et al. 2021) are around 0
    without bounds. `parts` of an XCOMET has `source` (the regression) and `mqm` (from its error spans). A pair that
    the published code would truncate is `too_long`. Runs unbabel-comet in the environment `comet`.

    Args:
        model: a folder with `hparams.yaml` and `checkpoints/`, a `.ckpt` file inside one, or a name on the hub.
        encoder: folder of the model's base encoder, if the one named in the model is not available.
        python: interpreter, or folder, of the environment; None for `VERIGLOT_ENV_COMET`, else the one in the cache.
        device: such as `cpu` or `cuda:0`; None for CUDA if available.
        batch_size: pairs per batch.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.
        accept_licence: whether to accept the model's licence, if it is not a permissive one.

    Raises:
        UsageError: the environment does not exist; the remedy is the commands that create it.
        WeightsError: the model cannot be loaded, or needs references.
        WeightsError: its licence must be accepted first.
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


class Laser(_ExternalScorer):
    """Cosine of LASER2 or LASER3 sentence embeddings (Heffernan et al. 2022) of source and translation; -1 to 1.

    Higher is better. Runs laser_encoders in the environment `laser`; nothing is downloaded.

    Args:
        model: folder with `laser2.pt`, `laser2.spm`, and the LASER3 files to use.
        encoder: name of the encoder file for the response, without suffix: `laser2`, or `laser3-hau_Latn.v1`.
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


class Blaser(_ExternalScorer):
    """BLASER 2.0 QE (Chen et al. 2023) on SONAR embeddings; 1 to 5 on its authors' scale, higher is better.

    SONAR needs the languages as FLORES-200 codes; languages that are not given are identified. Runs
    sonar-space in the environment `sonar`.

    Args:
        model: a card of that package, a `model.pt`, or its folder.
        encoder: card of the text encoder.
        codes: the encoder's codes of languages that our table lacks, `TAG=CODE` separated by commas.
        python, device, timeout, start_timeout, accept_licence: as for `Comet`; of the environment `sonar`.

    Raises:
        UsageError, WeightsError, VeriglotError: as for `Comet`.
        UsageError: invalid codes.
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
        self._codes = parse_codes(codes)
        given = {
            "model": model, "encoder": encoder, "tokenizer": encoder, "device": device, "offline": offline(),
        }  # fmt: skip
        about = {"model": model, "revision": checkpoint_revision(model), "encoder": encoder}
        self._open(python_of("sonar", python), "sonar", given, about, start_timeout=start_timeout, timeout=timeout)

    def _row(self, pair: Pair) -> Json | NotScored:
        """A pair without the codes of both languages is not scored."""
        tags = pair_languages(pair)
        codes = [self._codes.get(tag or "") or translation_codes()["nllb"].get(tag_of(tag) or "") for tag in tags]
        if None in codes:
            side, tag = ("source", tags[0]) if codes[0] is None else ("response", tags[1])
            reason = f"SONAR needs the language of the {side}, and there is no code for {tag or 'unknown'}"
            return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        return {"source": pair.source, "response": pair.response, "source_language": codes[0], "language": codes[1]}


class Process(_ExternalScorer):
    """The score of your own engine, in any Python environment: a file with a class `Engine`.

    Args:
        engine: the file; docs/neural_scorers.md describes its class.
        python: the interpreter, or the folder of its environment.
        options: arguments of its constructor; the signature has a digest of them.
        higher_is_better: whether a higher score is better.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.

    Raises:
        UsageError: the file or the interpreter does not exist.
        WeightsError: the engine refuses to start; VeriglotError: it fails to start.
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
        if options:  # a digest, since they may contain secrets such as keys
            about["options"] = digest([msgspec.json.encode(options, order="sorted")])[:12]
        self._open(python, file, options or {}, about, start_timeout=start_timeout, timeout=timeout)

    def _row(self, pair: Pair) -> Json:
        return pair._asdict()
