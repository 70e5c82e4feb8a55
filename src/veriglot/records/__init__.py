"""The data model and nothing else: samples, evidence, spans, annotations, predictions, profiles, taxonomies."""

from veriglot.records.codec import decode_json, encode, from_mapping, prediction_from, sample_from
from veriglot.records.prediction import Prediction, Status
from veriglot.records.profile import CONFIDENCE_BINS, Confusion, DataSource, ErrorProfile, LanguageProfile
from veriglot.records.protocols import Detector, Scorer
from veriglot.records.rate import Estimator, Rate, Reliability
from veriglot.records.sample import Annotation, Evidence, Generator, Kind, Sample, Task
from veriglot.records.score import Direction, Score
from veriglot.records.span import JudgedUnit, Pointer, Span, Unit, Word
from veriglot.records.taxonomy import Taxonomy, taxonomies, taxonomy

__all__ = [
    "CONFIDENCE_BINS",
    "Annotation",
    "Confusion",
    "DataSource",
    "Detector",
    "Direction",
    "ErrorProfile",
    "Estimator",
    "Evidence",
    "Generator",
    "JudgedUnit",
    "Kind",
    "LanguageProfile",
    "Pointer",
    "Prediction",
    "Rate",
    "Reliability",
    "Sample",
    "Score",
    "Scorer",
    "Span",
    "Status",
    "Task",
    "Taxonomy",
    "Unit",
    "Word",
    "decode_json",
    "encode",
    "from_mapping",
    "prediction_from",
    "sample_from",
    "taxonomies",
    "taxonomy",
]
