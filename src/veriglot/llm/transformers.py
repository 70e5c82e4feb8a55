"""A model in this process, with the transformers library."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import torch
import transformers

from veriglot.errors import UsageError
from veriglot.hub.checkpoints import first_line, load_pretrained
from veriglot.llm.client import Client, ModelError, Reply, Request, Settings, Token
from veriglot.signatures import digest, signature

__all__ = []

_UNUSABLE = ("frequency_penalty", "presence_penalty")  # generate() has neither


class Local(Client):
    """A causal language model in this process. One request at a time; use a server for many users.

    Settings that are None come from the model's own generation configuration. Log probabilities are those before
    temperature and other processing. Random numbers depend only on the request's seed, so the same request gives the
    same reply on the same machine and versions, in any order.

    Args:
        model: a folder, a model of the registry, or a name on the hub.
        revision: of a model on the hub.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: such as `float32` or `bfloat16`; `auto` for that of the file.
        trust_remote_code: run code of the model's repository.
        options: further arguments of `from_pretrained`, such as `{"gguf_file": "..."}` or a quantisation; as JSON
            values.

    Raises:
        WeightsError: the model cannot be loaded.
        UsageError: PyTorch knows no such device.
    """

    name = "transformers"

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "auto",
        trust_remote_code: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        loaded = load_pretrained(
            transformers.AutoModelForCausalLM,
            model,
            what="language model",
            revision=revision,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            options=options,
        )
        self.model = model
        self._tokenizer, self._model, self._device = loaded.tokenizer, loaded.network, loaded.device
        self._lock = threading.Lock()
        self.signature = signature(
            client=self.name,
            model=model,
            revision=loaded.revision,
            options=digest([msgspec.json.encode(options, order="deterministic")])[:16] if options else None,
            **loaded.settings,
        )

    def ask(self, request: Request) -> Reply:
        """Generate one reply; a schema is added to the prompt as text.

        Raises:
            ModelError: a prompt longer than the model's context, a chat with a model without chat template, or a
                failure of the library.
            UsageError: a request for another model, or settings that the library does not support.
        """
        if request.model != self.model:
            raise UsageError(
                f"This client runs {self.model!r}, and the request is for {request.model!r}.",
                "Open a client per local model.",
            )
        asked = request.in_words()
        with self._lock, torch.inference_mode():
            ids = self._encode(asked)
            generation = self._configuration(asked.settings, ids.shape[1])
            try:
                return self._generate(asked, ids, generation)
            except (RuntimeError, ValueError) as error:  # out of memory, or settings that conflict
                raise ModelError(f"{self.model} failed: {first_line(error)}", "Change the settings.") from error

    def _encode(self, request: Request) -> torch.Tensor:
        if request.prompt is not None:
            ids = self._tokenizer(request.prompt, return_tensors="pt")["input_ids"]
        elif not getattr(self._tokenizer, "chat_template", None):
            raise ModelError(
                f"{self.model} has no chat template, so it cannot be given messages.",
                "Give it a prompt to go on from instead.",
                fatal=True,
            )
        else:
            turns = [{"role": message.role, "content": message.content} for message in request.messages]
            try:
                text = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
            except Exception as error:  # templates are programs, which raise any exception
                raise ModelError(
                    f"The chat template of {self.model} refuses the messages: {first_line(error)}"
                ) from error
            # The template has already added the special tokens.
            ids = self._tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        moved: torch.Tensor = ids.to(self._device)
        return moved

    def _configuration(self, settings: Settings, prompt: int) -> transformers.GenerationConfig:
        """The model's own configuration, updated with the settings."""
        given = settings.given()
        for name in _UNUSABLE:
            if given.pop(name, 0):
                raise UsageError(f"The transformers library has no {name}.", "Use repetition_penalty.")
        bound = given.pop("max_tokens", None)
        stop = given.pop("stop", None)
        if given.get("temperature") == 0:
            del given["temperature"]
            given["do_sample"] = False
        elif "do_sample" not in given and given.keys() & {"temperature", "top_p", "top_k", "min_p", "typical_p"}:
            given["do_sample"] = True  # as servers do, if a sampling setting is given
        if given.get("top_k", 1) < 0:
            given["top_k"] = 0
        generation = transformers.GenerationConfig.from_dict(self._model.generation_config.to_dict())
        unknown = generation.update(**(given | settings.extra))
        if unknown:
            raise UsageError(
                f"The transformers library has no setting {', '.join(sorted(unknown))}.",
                "Leave it out: it would be ignored.",
            )
        generation.max_new_tokens = self._room(bound or generation.max_new_tokens, prompt)
        generation.stop_strings = list(stop) if stop else generation.stop_strings
        generation.return_dict_in_generate = True
        if generation.pad_token_id is None:
            generation.pad_token_id = self._tokenizer.pad_token_id or self._tokenizer.eos_token_id or 0
        return generation

    def _room(self, wanted: int | None, prompt: int) -> int:
        """Maximum number of new tokens, limited by the context if it is known."""
        context = getattr(self._model.config, "max_position_embeddings", None)
        room = context - prompt if context else None
        if room is not None and room < 1:
            raise ModelError(
                f"The prompt has {prompt:,} tokens, and the context of {self.model} holds {context:,}.",
                "Give less evidence, or use another model. Prompts are never truncated.",
            )
        if wanted is None and room is None:
            raise UsageError(f"{self.model} names no length.", "Set max_tokens.")
        return min(number for number in (wanted, room) if number is not None)

    def _generate(self, request: Request, ids: torch.Tensor, generation: transformers.GenerationConfig) -> Reply:
        generation.output_logits = request.logprobs
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            if request.seed is not None:
                torch.manual_seed(request.seed)
            output = self._model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=generation, tokenizer=self._tokenizer
            )
        new = output.sequences[0, ids.shape[1] :]
        text, at_stop = _until(self._tokenizer.decode(new, skip_special_tokens=True), request.settings.stop)
        end = generation.eos_token_id
        ended = at_stop or int(new[-1]) in (end if isinstance(end, list) else [end])
        settings = generation.to_diff_dict().items()
        return Reply(
            text=text,
            finish="stop" if ended else "length",
            tokens_in=int(ids.shape[1]),
            tokens_out=len(new),
            logprobs=self._logprobs(new, output.logits, request.alternatives) if request.logprobs else None,
            model=self.model,
            settings={name: value for name, value in settings if isinstance(value, str | int | float | bool | list)},
        )

    def _logprobs(self, new: torch.Tensor, logits: tuple[torch.Tensor, ...], alternatives: int) -> tuple[Token, ...]:
        tokens = []
        for chosen, row in zip(new.tolist(), logits, strict=True):
            every = torch.log_softmax(row[0].float(), -1)
            likeliest = every.topk(min(alternatives, len(every)))
            pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
            others = tuple((self._tokenizer.decode([token]), value) for token, value in pairs)
            tokens.append(Token(self._tokenizer.decode([chosen]), every[chosen].item(), others))
        return tuple(tokens)


def _until(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    places = [position for position in (text.find(stop) for stop in stops) if position >= 0]
    return (text[: min(places)], True) if places else (text, False)
