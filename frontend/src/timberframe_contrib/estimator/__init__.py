"""`tf.estimator`: models that are trained, evaluated, asked and exported, each in a folder of checkpoints."""

import sys

from timberframe.boundary import guard
from timberframe.train.basic_hooks import FeedFnHook as FeedFnHook
from timberframe.train.basic_hooks import FinalOpsHook as FinalOpsHook
from timberframe.train.basic_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from timberframe.train.basic_hooks import LoggingTensorHook as LoggingTensorHook
from timberframe.train.basic_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from timberframe.train.basic_hooks import NanTensorHook as NanTensorHook
from timberframe.train.basic_hooks import StopAtStepHook as StopAtStepHook
from timberframe.train.checkpoint_hooks import CheckpointSaverHook as CheckpointSaverHook
from timberframe.train.checkpoint_hooks import CheckpointSaverListener as CheckpointSaverListener
from timberframe.train.session_run_hook import SessionRunArgs as SessionRunArgs
from timberframe.train.session_run_hook import SessionRunContext as SessionRunContext
from timberframe.train.session_run_hook import SessionRunHook as SessionRunHook
from timberframe.train.session_run_hook import SessionRunValues as SessionRunValues
from timberframe.train.summary_hooks import ProfilerHook as ProfilerHook
from timberframe.train.summary_hooks import StepCounterHook as StepCounterHook
from timberframe.train.summary_hooks import SummarySaverHook as SummarySaverHook
from timberframe.train.timers import SecondOrStepTimer as SecondOrStepTimer
from timberframe.train.warm_starting import VocabInfo as VocabInfo
from timberframe_contrib.estimator import experimental as experimental
from timberframe_contrib.estimator import export as export
from timberframe_contrib.estimator import inputs as inputs
from timberframe_contrib.estimator.canned.baseline import BaselineClassifier as BaselineClassifier
from timberframe_contrib.estimator.canned.baseline import BaselineEstimator as BaselineEstimator
from timberframe_contrib.estimator.canned.baseline import BaselineRegressor as BaselineRegressor
from timberframe_contrib.estimator.canned.class_heads import BinaryClassHead as BinaryClassHead
from timberframe_contrib.estimator.canned.class_heads import MultiClassHead as MultiClassHead
from timberframe_contrib.estimator.canned.combined import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from timberframe_contrib.estimator.canned.combined import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from timberframe_contrib.estimator.canned.combined import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from timberframe_contrib.estimator.canned.heads import Head as Head
from timberframe_contrib.estimator.canned.heads import RegressionHead as RegressionHead
from timberframe_contrib.estimator.canned.label_heads import LogisticRegressionHead as LogisticRegressionHead
from timberframe_contrib.estimator.canned.label_heads import MultiLabelHead as MultiLabelHead
from timberframe_contrib.estimator.canned.label_heads import PoissonRegressionHead as PoissonRegressionHead
from timberframe_contrib.estimator.canned.models import DNNClassifier as DNNClassifier
from timberframe_contrib.estimator.canned.models import DNNEstimator as DNNEstimator
from timberframe_contrib.estimator.canned.models import DNNRegressor as DNNRegressor
from timberframe_contrib.estimator.canned.models import LinearClassifier as LinearClassifier
from timberframe_contrib.estimator.canned.models import LinearEstimator as LinearEstimator
from timberframe_contrib.estimator.canned.models import LinearRegressor as LinearRegressor
from timberframe_contrib.estimator.canned.multi_head import MultiHead as MultiHead
from timberframe_contrib.estimator.estimator import Estimator as Estimator
from timberframe_contrib.estimator.exporters import BestExporter as BestExporter
from timberframe_contrib.estimator.exporters import Exporter as Exporter
from timberframe_contrib.estimator.exporters import FinalExporter as FinalExporter
from timberframe_contrib.estimator.exporters import LatestExporter as LatestExporter
from timberframe_contrib.estimator.extending import add_metrics as add_metrics
from timberframe_contrib.estimator.parsing import classifier_parse_example_spec as classifier_parse_example_spec
from timberframe_contrib.estimator.parsing import regressor_parse_example_spec as regressor_parse_example_spec
from timberframe_contrib.estimator.run_config import RunConfig as RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec as EstimatorSpec
from timberframe_contrib.estimator.spec import ModeKeys as ModeKeys
from timberframe_contrib.estimator.train_and_evaluate import EvalSpec as EvalSpec
from timberframe_contrib.estimator.train_and_evaluate import TrainSpec as TrainSpec
from timberframe_contrib.estimator.train_and_evaluate import train_and_evaluate as train_and_evaluate
from timberframe_contrib.estimator.warm_start import WarmStartSettings as WarmStartSettings

guard([sys.modules[__name__], export, inputs])  # here, since `import timberframe` does not load this package
