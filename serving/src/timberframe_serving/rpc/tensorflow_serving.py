"""TensorFlow Serving's gRPC services: PredictionService and ModelService."""

from __future__ import annotations

from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_serving.codes import as_op_error, shown
from timberframe_serving.messages import serving
from timberframe_serving.rpc.calls import handlers
from timberframe_serving.service import Service, Spec, fill_spec, signature_map

_SIGNATURES = "signature_def"


def prediction_service(service: Service) -> Any:
    """Returns the handlers of `tensorflow.serving.PredictionService`."""

    async def predict(request: Any) -> Any:
        with service.counted(request.model_spec.name, "GRPC", "Predict"):
            return await service.predict(request)

    async def classify(request: Any) -> Any:
        with service.counted(request.model_spec.name, "GRPC", "Classify"):
            return await service.examples(request, "classify")

    async def regress(request: Any) -> Any:
        with service.counted(request.model_spec.name, "GRPC", "Regress"):
            return await service.examples(request, "regress")

    async def multi_inference(request: Any) -> Any:
        name = request.tasks[0].model_spec.name if request.tasks else ""
        with service.counted(name, "GRPC", "MultiInference"):
            return await service.multi_inference(request)

    async def metadata(request: Any) -> Any:
        with service.counted(request.model_spec.name, "GRPC", "GetModelMetadata"):
            return _metadata(service, request)

    methods = {
        "Predict": (serving("PredictRequest"), predict),
        "Classify": (serving("ClassificationRequest"), classify),
        "Regress": (serving("RegressionRequest"), regress),
        "MultiInference": (serving("MultiInferenceRequest"), multi_inference),
        "GetModelMetadata": (serving("GetModelMetadataRequest"), metadata),
    }
    return handlers(service, "tensorflow.serving.PredictionService", methods)


def _metadata(service: Service, request: Any) -> Any:
    if list(request.metadata_field) != [_SIGNATURES]:
        raise InvalidArgumentError(
            f"request: metadata_field is {list(request.metadata_field)[:5]}; ['{_SIGNATURES}'] is required"
        )
    spec = Spec.of(request.model_spec)
    servable = service.manager.servable(spec.name, spec.version, spec.label)
    response = serving("GetModelMetadataResponse")()
    fill_spec(response.model_spec, servable, "")
    found = response.metadata[_SIGNATURES]
    found.type_url = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    found.value = signature_map(servable.signatures.values()).SerializeToString()
    return response


def model_service(service: Service) -> Any:
    """Returns the handlers of `tensorflow.serving.ModelService`."""

    async def status(request: Any) -> Any:
        response = serving("GetModelStatusResponse")()
        states = serving("ModelVersionStatus").State
        for version in service.versions(Spec.of(request.model_spec)):
            made = response.model_version_status.add(version=version.number, state=states.Value(version.state.public))
            if version.error is not None:
                made.status.error_code, made.status.error_message = version.error.error_code, shown(str(version.error))
            else:
                made.status.error_code = 0
        return response

    async def reload(request: Any) -> Any:
        response = serving("ReloadConfigResponse")()
        response.status.error_code = 0
        try:
            await service.reload(request.config)
        except Exception as raised:
            error = as_op_error(raised)
            response.status.error_code, response.status.error_message = error.error_code, shown(str(error))
        return response

    methods = {
        "GetModelStatus": (serving("GetModelStatusRequest"), status),
        "HandleReloadConfigRequest": (serving("ReloadConfigRequest"), reload),
    }
    return handlers(service, "tensorflow.serving.ModelService", methods)
