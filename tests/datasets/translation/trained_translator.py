"""A Marian that is trained here to translate sentences of thirty words into German: small, but correct."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING

import sentencepiece
import torch
import transformers

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("Karl", "Anna", "Peter", "Maria", "Lukas")
VERBS = {"opened": "eröffnete", "built": "baute", "painted": "malte", "sold": "verkaufte"}
THINGS = {"bridge": "die Brücke", "tower": "den Turm", "house": "das Haus", "mill": "die Mühle", "gate": "das Tor"}
YEARS = ("1879", "1897", "1901", "1846")
STEPS = 420
HELD_OUT = 5  # every fifth sentence is not in the training


def sentences() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """English, German in another order, and the corresponding parts; the same order at each call."""
    found = []
    for name, verb, thing, year in itertools.product(NAMES, VERBS, THINGS, YEARS):
        parts = [(name, name), (verb, VERBS[verb]), (f"the {thing}", THINGS[thing]), (year, year)]
        english = f"{name} {verb} the {thing} in {year}."
        found.append((english, f"Im Jahr {year} {VERBS[verb]} {name} {THINGS[thing]}.", parts))
    random.Random(1).shuffle(found)
    return found


def training_pairs() -> list[tuple[str, str]]:
    """Sentences as they are, with a marker around one part, and parts alone."""
    pairs: dict[tuple[str, str], None] = {}
    apart: dict[tuple[str, str], None] = {}
    for number, (english, german, parts) in enumerate(sentences()):
        if number % HELD_OUT == 0:
            continue
        pairs[english, german] = None
        for there, here in parts:
            pairs[english.replace(there, f"<1>{there}</1>"), german.replace(here, f"<1>{here}</1>")] = None
            apart[there, here] = None
    return [*pairs, *(list(apart) * 30)]


def write_trained(folder: Path) -> Path:
    """Train it, half a minute on one core, and save it as transformers does."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = training_pairs()
    words = sorted({word for pair in pairs for side in pair for word in _words(side)})
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([side for pair in pairs for side in pair]), model_prefix=str(folder / "pieces"),
        vocab_size=len(words) + 80, user_defined_symbols=["<1>", "</1>", ".", *words], minloglevel=2, num_threads=1,
        pad_id=3, hard_vocab_limit=False,
    )  # fmt: skip
    model = str(folder / "pieces.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    names = [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
    table = folder / "vocab-made.json"
    names = list(dict.fromkeys(["</s>", "<unk>", "<pad>", *names]))
    table.write_text(json.dumps({name: number for number, name in enumerate(names)}), "utf-8")
    tokenizer = transformers.MarianTokenizer(model, model, str(table), source_lang="en", target_lang="de")
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = _trained(tokenizer, pairs)
    network.save_pretrained(folder)
    return folder


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.replace("<1>", " ").replace("</1>", " ")).split()


def _trained(tokenizer: transformers.MarianTokenizer, pairs: list[tuple[str, str]]) -> transformers.MarianMTModel:
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64, dropout=0.0,
        attention_dropout=0.0, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None, init_std=0.1,
    )  # fmt: skip
    network = transformers.MarianMTModel(config).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=STEPS)
    generator = random.Random(1)
    for _ in range(STEPS):
        batch = generator.sample(pairs, 64)
        source = tokenizer([pair[0] for pair in batch], padding=True, return_tensors="pt")
        target = tokenizer(text_target=[pair[1] for pair in batch], padding=True, return_tensors="pt")["input_ids"]
        labels = target.masked_fill(target == tokenizer.pad_token_id, -100)
        loss = network(**source, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return network.eval()
