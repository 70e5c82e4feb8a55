"""The data model and nothing else: samples, evidence, spans, annotations, predictions, profiles, taxonomies."""

from veriglot.records.codec import decode_json, encode, from_mapping, prediction_from, sample_from
from veriglot.records.prediction import Detector, Direction, Prediction, Score, Scorer, Status
from veriglot.records.profile import CONFIDENCE_BINS, Confusion, DataSource, ErrorProfile, LanguageProfile
from veriglot.records.rate import Estimate, Estimator, Interval, Rate, Reliability
from veriglot.records.sample import (
    Annotation,
    Evidence,
    Generator,
    JudgedUnit,
    Kind,
    Pointer,
    Sample,
    Span,
    Task,
    Unit,
    Word,
)
from veriglot.records.taxonomy import Taxonomy, taxonomies, taxonomy

__all__ = [
    "CONFIDENCE_BINS",
    "Annotation",
    "Confusion",
    "DataSource",
    "Detector",
    "Direction",
    "ErrorProfile",
    "Estimate",
    "Estimator",
    "Evidence",
    "Generator",
    "Interval",
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
