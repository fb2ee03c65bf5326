"""The messages of TensorFlow Serving and of the Open Inference Protocol, as data.

They are written as in `timberframe_core.graphdef.schema`; names that are not here, such as `TensorProto`, are found
there. Names and numbers are those of the published protocols. The well-known types of protobuf, `Int64Value` and `Any`,
are written out here: on the wire, and in text, they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

TENSORFLOW_SERVING = "tensorflow.serving"
OPEN_INFERENCE = "inference"
HEALTH = "grpc.health.v1"

_POLICY = "FileSystemStoragePathSourceConfig.ServableVersionPolicy"

_CONFIG = {
    "FileSystemStoragePathSourceConfig": "",
    _POLICY: f"latest 100 {_POLICY}.Latest | policy_choice, all 101 {_POLICY}.All | policy_choice, "
    f"specific 102 {_POLICY}.Specific | policy_choice",
    f"{_POLICY}.Latest": "num_versions 1 uint32",
    f"{_POLICY}.All": "",
    f"{_POLICY}.Specific": "versions 1 [int64]",
    "LogCollectorConfig": "type 1 string, filename_prefix 2 string",
    "SamplingConfig": "sampling_rate 1 double",
    "LoggingConfig": "log_collector_config 1 LogCollectorConfig, sampling_config 2 SamplingConfig",
    "ModelConfig": "name 1 string, base_path 2 string, model_type 3 ModelType, model_platform 4 string, "
    f"model_version_policy 7 {_POLICY}, version_labels 8 {{string: int64}}, logging_config 6 LoggingConfig, "
    "runtime 1000 ModelRuntime",
    # Ours: the field is one that TensorFlow Serving does not have.
    "ModelRuntime": "device 1 string, intra_op_parallelism_threads 2 int32, inter_op_parallelism_threads 3 int32, "
    "memory_limit 4 {string: int64}, batching_parameters 5 BatchingParameters",
    "ModelConfigList": "config 1 [ModelConfig]",
    "ModelServerConfig": "model_config_list 1 ModelConfigList | config, custom_model_config 2 Any | config",
    "BatchingParameters": "max_batch_size 1 Int64Value, batch_timeout_micros 2 Int64Value, "
    "max_enqueued_batches 3 Int64Value, num_batch_threads 4 Int64Value, thread_pool_name 5 StringValue, "
    "allowed_batch_sizes 6 [int64], pad_variable_length_inputs 7 bool, enable_large_batch_splitting 8 BoolValue",
}

_REQUESTS = {
    "Int64Value": "value 1 int64",
    "BoolValue": "value 1 bool",
    "StringValue": "value 1 string",
    "Any": "type_url 1 string, value 2 bytes",
    "ModelSpec": "name 1 string, version 2 Int64Value | version_choice, version_label 4 string | version_choice, "
    "signature_name 3 string",
    "ExampleList": "examples 1 [Example]",
    "ExampleListWithContext": "examples 1 [Example], context 2 Example",
    "Input": "example_list 1 ExampleList | kind, example_list_with_context 2 ExampleListWithContext | kind",
    "PredictRequest": "model_spec 1 ModelSpec, inputs 2 {string: TensorProto}, output_filter 3 [string]",
    "PredictResponse": "model_spec 2 ModelSpec, outputs 1 {string: TensorProto}",
    "Class": "label 1 string, score 2 float",
    "Classifications": "classes 1 [Class]",
    "ClassificationResult": "classifications 1 [Classifications]",
    "ClassificationRequest": "model_spec 1 ModelSpec, input 2 Input",
    "ClassificationResponse": "model_spec 2 ModelSpec, result 1 ClassificationResult",
    "Regression": "value 1 float",
    "RegressionResult": "regressions 1 [Regression]",
    "RegressionRequest": "model_spec 1 ModelSpec, input 2 Input",
    "RegressionResponse": "model_spec 2 ModelSpec, result 1 RegressionResult",
    "InferenceTask": "model_spec 1 ModelSpec, method_name 2 string",
    "InferenceResult": "model_spec 1 ModelSpec, classification_result 2 ClassificationResult | result, "
    "regression_result 3 RegressionResult | result",
    "MultiInferenceRequest": "tasks 1 [InferenceTask], input 2 Input",
    "MultiInferenceResponse": "results 1 [InferenceResult]",
    "SignatureDefMap": "signature_def 1 {string: SignatureDef}",
    "GetModelMetadataRequest": "model_spec 1 ModelSpec, metadata_field 2 [string]",
    "GetModelMetadataResponse": "model_spec 1 ModelSpec, metadata 2 {string: Any}",
}

_MANAGEMENT = {
    "StatusProto": "error_code 1 int32, error_message 2 string",
    "GetModelStatusRequest": "model_spec 1 ModelSpec",
    "ModelVersionStatus": "version 1 int64, state 2 ModelVersionStatus.State, status 3 StatusProto",
    "GetModelStatusResponse": "model_version_status 1 [ModelVersionStatus]",
    "ReloadConfigRequest": "config 1 ModelServerConfig, metric_names 2 [string]",
    "Metric": "name 1 string, int64_value_increase 2 int64 | value_increase",
    "ReloadConfigResponse": "status 1 StatusProto, metric 2 [Metric]",
}

_LOGS = {
    "LogMetadata": "model_spec 1 ModelSpec, sampling_config 2 SamplingConfig, saved_model_tags 3 [string], "
    "timestamp_secs 4 int64",
    "ClassifyLog": "request 1 ClassificationRequest, response 2 ClassificationResponse",
    "RegressLog": "request 1 RegressionRequest, response 2 RegressionResponse",
    "PredictLog": "request 1 PredictRequest, response 2 PredictResponse",
    "MultiInferenceLog": "request 1 MultiInferenceRequest, response 2 MultiInferenceResponse",
    "PredictionLog": "log_metadata 1 LogMetadata, classify_log 2 ClassifyLog | log_type, "
    "regress_log 3 RegressLog | log_type, predict_log 6 PredictLog | log_type, "
    "multi_inference_log 4 MultiInferenceLog | log_type",
}

SERVING_MESSAGES: Mapping[str, str] = {**_CONFIG, **_REQUESTS, **_MANAGEMENT, **_LOGS}
SERVING_ENUMS: Mapping[str, Mapping[str, int]] = {
    "ModelType": {"MODEL_TYPE_UNSPECIFIED": 0, "TENSORFLOW": 1, "OTHER": 2},
    "ModelVersionStatus.State": {"UNKNOWN": 0, "START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50},
}

_PARAMETER = (
    "bool_param 1 bool | parameter_choice, int64_param 2 int64 | parameter_choice, "
    "string_param 3 string | parameter_choice, double_param 4 double | parameter_choice, "
    "uint64_param 5 uint64 | parameter_choice"
)
_TENSOR = "name 1 string, datatype 2 string, shape 3 [int64]"

INFERENCE_MESSAGES: Mapping[str, str] = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "live 1 bool",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready 1 bool",
    "ModelReadyRequest": "name 1 string, version 2 string",
    "ModelReadyResponse": "ready 1 bool",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "name 1 string, version 2 string, extensions 3 [string]",
    "ModelMetadataRequest": "name 1 string, version 2 string",
    "ModelMetadataResponse": "name 1 string, versions 2 [string], platform 3 string, "
    "inputs 4 [ModelMetadataResponse.TensorMetadata], outputs 5 [ModelMetadataResponse.TensorMetadata]",
    "ModelMetadataResponse.TensorMetadata": _TENSOR,
    "InferParameter": _PARAMETER,
    "InferTensorContents": "bool_contents 1 [bool], int_contents 2 [int32], int64_contents 3 [int64], "
    "uint_contents 4 [uint32], uint64_contents 5 [uint64], fp32_contents 6 [float], fp64_contents 7 [double], "
    "bytes_contents 8 [bytes]",
    "ModelInferRequest": "model_name 1 string, model_version 2 string, id 3 string, "
    "parameters 4 {string: InferParameter}, inputs 5 [ModelInferRequest.InferInputTensor], "
    "outputs 6 [ModelInferRequest.InferRequestedOutputTensor], raw_input_contents 7 [bytes]",
    "ModelInferRequest.InferInputTensor": f"{_TENSOR}, parameters 4 {{string: InferParameter}}, "
    "contents 5 InferTensorContents",
    "ModelInferRequest.InferRequestedOutputTensor": "name 1 string, parameters 2 {string: InferParameter}",
    "ModelInferResponse": "model_name 1 string, model_version 2 string, id 3 string, "
    "parameters 4 {string: InferParameter}, outputs 5 [ModelInferResponse.InferOutputTensor], "
    "raw_output_contents 6 [bytes]",
    "ModelInferResponse.InferOutputTensor": f"{_TENSOR}, parameters 4 {{string: InferParameter}}, "
    "contents 5 InferTensorContents",
    "ModelRepositoryParameter": "bool_param 1 bool | parameter_choice, int64_param 2 int64 | parameter_choice, "
    "string_param 3 string | parameter_choice, bytes_param 4 bytes | parameter_choice",
    "RepositoryIndexRequest": "repository_name 1 string, ready 2 bool",
    "RepositoryIndexResponse": "models 1 [RepositoryIndexResponse.ModelIndex]",
    "RepositoryIndexResponse.ModelIndex": "name 1 string, version 2 string, state 3 string, reason 4 string",
    "RepositoryModelLoadRequest": "repository_name 1 string, model_name 2 string, "
    "parameters 3 {string: ModelRepositoryParameter}",
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": "repository_name 1 string, model_name 2 string, "
    "parameters 3 {string: ModelRepositoryParameter}",
    "RepositoryModelUnloadResponse": "",
}

HEALTH_MESSAGES: Mapping[str, str] = {
    "HealthCheckRequest": "service 1 string",
    "HealthCheckResponse": "status 1 HealthCheckResponse.ServingStatus",
}
HEALTH_ENUMS: Mapping[str, Mapping[str, int]] = {
    "HealthCheckResponse.ServingStatus": {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}
}
