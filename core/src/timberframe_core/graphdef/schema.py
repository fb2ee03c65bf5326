"""Names, numbers and types of the fields of TensorFlow's protobuf messages, as data.

A message is a list of ``name number type``. A type is a protobuf scalar, another message or an enum; ``[type]`` is a
repeated field, ``{key: type}`` a map, and ``| group`` after it puts the field into that oneof. Only what graphs, ops,
session settings, saved models, summaries and examples need is here; fields that a newer producer wrote are kept,
unread, by protobuf itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from timberframe_core import dtypes

_TYPE_NAMES = {"float16": "HALF", "float32": "FLOAT", "float64": "DOUBLE"}
_LATER_TYPES = {
    "DT_FLOAT8_E4M3FNUZ": 26, "DT_FLOAT8_E4M3B11FNUZ": 27, "DT_FLOAT8_E5M2FNUZ": 28, "DT_INT2": 31, "DT_UINT2": 32,
    "DT_FLOAT4_E2M1FN": 33,
}  # fmt: skip


def _data_types() -> dict[str, int]:
    known = {d.number: d for d in dtypes.BY_NAME.values() if not d.is_ref}
    values = {f"DT_{_TYPE_NAMES.get(d.name, d.name.upper())}": number for number, d in known.items()} | _LATER_TYPES
    return {"DT_INVALID": 0} | values | {f"{name}_REF": number + 100 for name, number in values.items()}


ENUMS: Mapping[str, Mapping[str, int]] = {
    "DataType": _data_types(),
    "FullTypeId": {
        "TFT_UNSET": 0, "TFT_VAR": 1, "TFT_ANY": 2, "TFT_PRODUCT": 3, "TFT_NAMED": 4, "TFT_FOR_EACH": 20,
        "TFT_CALLABLE": 100, "TFT_BOOL": 200, "TFT_UINT8": 201, "TFT_UINT16": 202, "TFT_UINT32": 203,
        "TFT_UINT64": 204, "TFT_INT8": 205, "TFT_INT16": 206, "TFT_INT32": 207, "TFT_INT64": 208, "TFT_HALF": 209,
        "TFT_FLOAT": 210, "TFT_DOUBLE": 211, "TFT_COMPLEX64": 212, "TFT_COMPLEX128": 213, "TFT_STRING": 214,
        "TFT_BFLOAT16": 215, "TFT_TENSOR": 1000, "TFT_ARRAY": 1001, "TFT_OPTIONAL": 1002, "TFT_LITERAL": 1003,
        "TFT_ENCODED": 1004, "TFT_SHAPE_TENSOR": 1005, "TFT_DATASET": 10102, "TFT_RAGGED": 10103,
        "TFT_ITERATOR": 10104, "TFT_MUTEX_LOCK": 10202, "TFT_LEGACY_VARIANT": 10203,
    },
    "OptimizerOptions.Level": {"L1": 0, "L0": -1},
    "OptimizerOptions.GlobalJitLevel": {"DEFAULT": 0, "OFF": -1, "ON_1": 1, "ON_2": 2},
    "RewriterConfig.Toggle": {
        "DEFAULT": 0, "ON": 1, "OFF": 2, "AGGRESSIVE": 3, "EXPERIMENTAL_MLIR": 4, "EXPERIMENTAL_BOTH": 5,
    },
    "SaverDef.CheckpointFormatVersion": {"LEGACY": 0, "V1": 1, "V2": 2},
    "BundleHeaderProto.Endianness": {"LITTLE": 0, "BIG": 1},
    "VariableSynchronization": {
        "VARIABLE_SYNCHRONIZATION_AUTO": 0, "VARIABLE_SYNCHRONIZATION_NONE": 1,
        "VARIABLE_SYNCHRONIZATION_ON_WRITE": 2, "VARIABLE_SYNCHRONIZATION_ON_READ": 3,
    },
    "VariableAggregation": {
        "VARIABLE_AGGREGATION_NONE": 0, "VARIABLE_AGGREGATION_SUM": 1, "VARIABLE_AGGREGATION_MEAN": 2,
        "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA": 3,
    },
    "DataClass": {
        "DATA_CLASS_UNKNOWN": 0, "DATA_CLASS_SCALAR": 1, "DATA_CLASS_TENSOR": 2, "DATA_CLASS_BLOB_SEQUENCE": 3,
    },
    "SessionLog.SessionStatus": {"STATUS_UNSPECIFIED": 0, "START": 1, "STOP": 2, "CHECKPOINT": 3},
    "RunOptions.TraceLevel": {"NO_TRACE": 0, "SOFTWARE_TRACE": 1, "HARDWARE_TRACE": 2, "FULL_TRACE": 3},
}  # fmt: skip

_GRAPH = {
    "GraphDef": "node 1 [NodeDef], versions 4 VersionDef, version 3 int32, library 2 FunctionDefLibrary, "
    "debug_info 5 GraphDebugInfo",
    "NodeDef": "name 1 string, op 2 string, input 3 [string], device 4 string, attr 5 {string: AttrValue}, "
    "experimental_debug_info 6 NodeDef.ExperimentalDebugInfo, experimental_type 7 FullTypeDef",
    "NodeDef.ExperimentalDebugInfo": "original_node_names 1 [string], original_func_names 2 [string]",
    "VersionDef": "producer 1 int32, min_consumer 2 int32, bad_consumers 3 [int32]",
    "AttrValue": "s 2 bytes | value, i 3 int64 | value, f 4 float | value, b 5 bool | value, type 6 DataType | value, "
    "shape 7 TensorShapeProto | value, tensor 8 TensorProto | value, list 1 AttrValue.ListValue | value, "
    "func 10 NameAttrList | value, placeholder 9 string | value",
    "AttrValue.ListValue": "s 2 [bytes], i 3 [int64], f 4 [float], b 5 [bool], type 6 [DataType], "
    "shape 7 [TensorShapeProto], tensor 8 [TensorProto], func 9 [NameAttrList]",
    "NameAttrList": "name 1 string, attr 2 {string: AttrValue}",
    "FullTypeDef": "type_id 1 FullTypeId, args 2 [FullTypeDef], s 3 string | attr, i 4 int64 | attr",
    "GraphDebugInfo": "files 1 [string], frames_by_id 4 {fixed64: GraphDebugInfo.FileLineCol}, "
    "traces_by_id 6 {fixed64: GraphDebugInfo.StackTrace}, traces 2 {string: GraphDebugInfo.StackTrace}, "
    "name_to_trace_id 5 {string: fixed64}",
    "GraphDebugInfo.FileLineCol": "file_index 1 int32, line 2 int32, col 3 int32, func 4 string, code 5 string",
    "GraphDebugInfo.StackTrace": "file_line_cols 1 [GraphDebugInfo.FileLineCol], frame_id 2 [fixed64]",
}

_TENSOR = {
    "TensorShapeProto": "dim 2 [TensorShapeProto.Dim], unknown_rank 3 bool",
    "TensorShapeProto.Dim": "size 1 int64, name 2 string",
    "TensorProto": "dtype 1 DataType, tensor_shape 2 TensorShapeProto, version_number 3 int32, tensor_content 4 bytes, "
    "half_val 13 [int32], float_val 5 [float], double_val 6 [double], int_val 7 [int32], string_val 8 [bytes], "
    "scomplex_val 9 [float], int64_val 10 [int64], bool_val 11 [bool], dcomplex_val 12 [double], "
    "resource_handle_val 14 [ResourceHandleProto], variant_val 15 [VariantTensorDataProto], "
    "uint32_val 16 [uint32], uint64_val 17 [uint64], float8_val 18 bytes",
    "ResourceHandleProto": "device 1 string, container 2 string, name 3 string, hash_code 4 uint64, "
    "maybe_type_name 5 string, dtypes_and_shapes 6 [ResourceHandleProto.DtypeAndShape]",
    "ResourceHandleProto.DtypeAndShape": "dtype 1 DataType, shape 2 TensorShapeProto",
    "VariantTensorDataProto": "type_name 1 string, metadata 2 bytes, tensors 3 [TensorProto]",
}

_FUNCTION = {
    "FunctionDefLibrary": "function 1 [FunctionDef], gradient 2 [GradientDef], "
    "registered_gradients 3 [RegisteredGradient]",
    "FunctionDef": "signature 1 OpDef, attr 5 {string: AttrValue}, arg_attr 7 {uint32: FunctionDef.ArgAttrs}, "
    "resource_arg_unique_id 8 {uint32: uint32}, node_def 3 [NodeDef], ret 4 {string: string}, "
    "control_ret 6 {string: string}",
    "FunctionDef.ArgAttrs": "attr 1 {string: AttrValue}",
    "GradientDef": "function_name 1 string, gradient_func 2 string",
    "RegisteredGradient": "gradient_func 1 string, registered_op_type 2 string",
    "OpDef": "name 1 string, input_arg 2 [OpDef.ArgDef], output_arg 3 [OpDef.ArgDef], control_output 20 [string], "
    "attr 4 [OpDef.AttrDef], deprecation 8 OpDeprecation, summary 5 string, description 6 string, "
    "is_commutative 18 bool, is_aggregate 16 bool, is_stateful 17 bool, allows_uninitialized_input 19 bool, "
    "is_distributed_communication 21 bool",
    "OpDef.ArgDef": "name 1 string, description 2 string, type 3 DataType, type_attr 4 string, number_attr 5 string, "
    "type_list_attr 6 string, handle_data 7 [ResourceHandleProto.DtypeAndShape], is_ref 16 bool, "
    "experimental_full_type 17 FullTypeDef",
    "OpDef.AttrDef": "name 1 string, type 2 string, default_value 3 AttrValue, description 4 string, "
    "has_minimum 5 bool, minimum 6 int64, allowed_values 7 AttrValue",
    "OpDeprecation": "version 1 int32, explanation 2 string",
    "OpList": "op 1 [OpDef]",
}

_SESSION = {
    "ClusterDef": "job 1 [JobDef]",
    "JobDef": "name 1 string, tasks 2 {int32: string}",
    "ServerDef": "cluster 1 ClusterDef, job_name 2 string, task_index 3 int32, default_session_config 4 ConfigProto, "
    "protocol 5 string",
    "ConfigProto": "device_count 1 {string: int32}, intra_op_parallelism_threads 2 int32, "
    "inter_op_parallelism_threads 5 int32, use_per_session_threads 9 bool, placement_period 3 int32, "
    "device_filters 4 [string], gpu_options 6 GPUOptions, pluggable_device_options 18 GPUOptions, "
    "allow_soft_placement 7 bool, log_device_placement 8 bool, graph_options 10 GraphOptions, "
    "operation_timeout_in_ms 11 int64, isolate_session_state 15 bool, share_cluster_devices_in_session 17 bool",
    "GPUOptions": "per_process_gpu_memory_fraction 1 double, allow_growth 4 bool, allocator_type 2 string, "
    "deferred_deletion_bytes 3 int64, visible_device_list 5 string, polling_active_delay_usecs 6 int32, "
    "polling_inactive_delay_msecs 7 int32, force_gpu_compatible 8 bool, experimental 9 GPUOptions.Experimental",
    "GPUOptions.Experimental": "virtual_devices 1 [GPUOptions.Experimental.VirtualDevices], "
    "num_virtual_devices_per_gpu 15 int32, use_unified_memory 2 bool, gpu_host_mem_limit_in_mb 13 float",
    "GPUOptions.Experimental.VirtualDevices": "memory_limit_mb 1 [float], priority 2 [int32], device_ordinal 3 [int32]",
    "GraphOptions": "enable_recv_scheduling 2 bool, optimizer_options 3 OptimizerOptions, build_cost_model 4 int64, "
    "build_cost_model_after 9 int64, infer_shapes 5 bool, place_pruned_graph 6 bool, "
    "enable_bfloat16_sendrecv 7 bool, timeline_step 8 int32, rewrite_options 10 RewriterConfig",
    "OptimizerOptions": "do_common_subexpression_elimination 1 bool, do_constant_folding 2 bool, "
    "max_folded_constant_in_bytes 6 int64, do_function_inlining 4 bool, opt_level 3 OptimizerOptions.Level, "
    "global_jit_level 5 OptimizerOptions.GlobalJitLevel, cpu_global_jit 7 bool",
    "RewriterConfig": "layout_optimizer 1 RewriterConfig.Toggle, constant_folding 3 RewriterConfig.Toggle, "
    "shape_optimization 13 RewriterConfig.Toggle, remapping 14 RewriterConfig.Toggle, "
    "common_subgraph_elimination 24 RewriterConfig.Toggle, arithmetic_optimization 7 RewriterConfig.Toggle, "
    "dependency_optimization 8 RewriterConfig.Toggle, loop_optimization 9 RewriterConfig.Toggle, "
    "function_optimization 10 RewriterConfig.Toggle, disable_model_pruning 2 bool, disable_meta_optimizer 19 bool, "
    "optimizers 100 [string]",
    "RunOptions": "trace_level 1 RunOptions.TraceLevel, timeout_in_ms 2 int64, inter_op_thread_pool 3 int32, "
    "output_partition_graphs 5 bool, report_tensor_allocations_upon_oom 7 bool",
}

_SAVING = {
    "MetaGraphDef": "meta_info_def 1 MetaGraphDef.MetaInfoDef, graph_def 2 GraphDef, saver_def 3 SaverDef, "
    "collection_def 4 {string: CollectionDef}, signature_def 5 {string: SignatureDef}, asset_file_def 6 [AssetFileDef]",
    "MetaGraphDef.MetaInfoDef": "meta_graph_version 1 string, stripped_op_list 2 OpList, tags 4 [string], "
    "tensorflow_version 5 string, tensorflow_git_version 6 string, stripped_default_attrs 7 bool, "
    "function_aliases 8 {string: string}",
    "CollectionDef": "node_list 1 CollectionDef.NodeList | kind, bytes_list 2 CollectionDef.BytesList | kind, "
    "int64_list 3 CollectionDef.Int64List | kind, float_list 4 CollectionDef.FloatList | kind",
    "CollectionDef.NodeList": "value 1 [string]",
    "CollectionDef.BytesList": "value 1 [bytes]",
    "CollectionDef.Int64List": "value 1 [int64]",
    "CollectionDef.FloatList": "value 1 [float]",
    "SignatureDef": "inputs 1 {string: TensorInfo}, outputs 2 {string: TensorInfo}, method_name 3 string, "
    "defaults 4 {string: TensorProto}",
    "TensorInfo": "name 1 string | encoding, coo_sparse 4 TensorInfo.CooSparse | encoding, dtype 2 DataType, "
    "tensor_shape 3 TensorShapeProto",
    "TensorInfo.CooSparse": "values_tensor_name 1 string, indices_tensor_name 2 string, "
    "dense_shape_tensor_name 3 string",
    "AssetFileDef": "tensor_info 1 TensorInfo, filename 2 string",
    "SaverDef": "filename_tensor_name 1 string, save_tensor_name 2 string, restore_op_name 3 string, "
    "max_to_keep 4 int32, sharded 5 bool, keep_checkpoint_every_n_hours 6 float, "
    "version 7 SaverDef.CheckpointFormatVersion",
    "SavedModel": "saved_model_schema_version 1 int64, meta_graphs 2 [MetaGraphDef]",
    "BundleHeaderProto": "num_shards 1 int32, endianness 2 BundleHeaderProto.Endianness, version 3 VersionDef",
    "BundleEntryProto": "dtype 1 DataType, shape 2 TensorShapeProto, shard_id 3 int32, offset 4 int64, size 5 int64, "
    "crc32c 6 fixed32, slices 7 [TensorSliceProto]",
    "TensorSliceProto": "extent 1 [TensorSliceProto.Extent]",
    "TensorSliceProto.Extent": "start 1 int64, length 2 int64 | has_length",
    "VariableDef": "variable_name 1 string, initial_value_name 6 string, initializer_name 2 string, "
    "snapshot_name 3 string, save_slice_info_def 4 SaveSliceInfoDef, is_resource 5 bool, trainable 7 bool, "
    "synchronization 8 VariableSynchronization, aggregation 9 VariableAggregation",
    "SaveSliceInfoDef": "full_name 1 string, full_shape 2 [int64], var_offset 3 [int64], var_shape 4 [int64]",
    "TrackableObjectGraph": "nodes 1 [TrackableObjectGraph.TrackableObject]",
    "TrackableObjectGraph.TrackableObject": "children 1 [TrackableObjectGraph.TrackableObject.ObjectReference], "
    "attributes 2 [TrackableObjectGraph.TrackableObject.SerializedTensor], "
    "slot_variables 3 [TrackableObjectGraph.TrackableObject.SlotVariableReference]",
    "TrackableObjectGraph.TrackableObject.ObjectReference": "node_id 1 int32, local_name 2 string",
    "TrackableObjectGraph.TrackableObject.SerializedTensor": "name 1 string, full_name 2 string, "
    "checkpoint_key 3 string",
    "TrackableObjectGraph.TrackableObject.SlotVariableReference": "original_variable_node_id 1 int32, "
    "slot_name 2 string, slot_variable_node_id 3 int32",
    "QueueRunnerDef": "queue_name 1 string, enqueue_op_name 2 [string], close_op_name 3 string, "
    "cancel_op_name 4 string, queue_closed_exception_types 5 [int32]",
    "CheckpointState": "model_checkpoint_path 1 string, all_model_checkpoint_paths 2 [string], "
    "all_model_checkpoint_timestamps 3 [double], last_preserved_timestamp 4 double",
}

_SUMMARY = {
    "HistogramProto": "min 1 double, max 2 double, num 3 double, sum 4 double, sum_squares 5 double, "
    "bucket_limit 6 [double], bucket 7 [double]",
    "SummaryMetadata": "plugin_data 1 SummaryMetadata.PluginData, display_name 2 string, "
    "summary_description 3 string, data_class 4 DataClass",
    "SummaryMetadata.PluginData": "plugin_name 1 string, content 2 bytes",
    "SummaryDescription": "type_hint 1 string",
    "Summary": "value 1 [Summary.Value]",
    "Summary.Image": "height 1 int32, width 2 int32, colorspace 3 int32, encoded_image_string 4 bytes",
    "Summary.Audio": "sample_rate 1 float, num_channels 2 int64, length_frames 3 int64, "
    "encoded_audio_string 4 bytes, content_type 5 string",
    "Summary.Value": "node_name 7 string, tag 1 string, metadata 9 SummaryMetadata, simple_value 2 float | value, "
    "obsolete_old_style_histogram 3 bytes | value, image 4 Summary.Image | value, histo 5 HistogramProto | value, "
    "audio 6 Summary.Audio | value, tensor 8 TensorProto | value",
    "ProjectorConfig": "model_checkpoint_path 1 string, embeddings 2 [EmbeddingInfo], model_checkpoint_dir 3 string",
    "EmbeddingInfo": "tensor_name 1 string, metadata_path 2 string, bookmarks_path 3 string, tensor_shape 4 [uint32], "
    "sprite 5 SpriteMetadata, tensor_path 6 string",
    "SpriteMetadata": "image_path 1 string, single_image_dim 2 [uint32]",
    "SessionLog": "status 1 SessionLog.SessionStatus, checkpoint_path 2 string, msg 3 string",
    "TaggedRunMetadata": "tag 1 string, run_metadata 2 bytes",
    "OpLogProto": "log_entries 1 [OpLogEntry], id_to_string 2 {int64: string}",
    "OpLogEntry": "name 1 string, float_ops 2 int64, types 3 [string], code_def 4 CodeDef",
    "CodeDef": "traces 1 [CodeDef.Trace]",
    "CodeDef.Trace": "file_id 6 int64, lineno 2 int32, function_id 7 int64, line_id 8 int64, func_start_line 5 int32",
    "RunMetadata": "step_stats 1 StepStats, partition_graphs 3 [GraphDef]",
    "StepStats": "dev_stats 1 [DeviceStepStats]",
    "DeviceStepStats": "device 1 string, node_stats 2 [NodeExecStats]",
    "NodeExecStats": "node_name 1 string, all_start_micros 2 int64, op_start_rel_micros 3 int64, "
    "op_end_rel_micros 4 int64, all_end_rel_micros 5 int64, timeline_label 8 string, scheduled_micros 9 int64, "
    "thread_id 10 uint32, all_start_nanos 13 int64, op_start_rel_nanos 14 int64, op_end_rel_nanos 15 int64, "
    "all_end_rel_nanos 16 int64, scheduled_nanos 17 int64",
    "Event": "wall_time 1 double, step 2 int64, file_version 3 string | what, graph_def 4 bytes | what, "
    "summary 5 Summary | what, session_log 7 SessionLog | what, tagged_run_metadata 8 TaggedRunMetadata | what, "
    "meta_graph_def 9 bytes | what",
}

_EXAMPLE = {
    "BytesList": "value 1 [bytes]",
    "FloatList": "value 1 [float]",
    "Int64List": "value 1 [int64]",
    "Feature": "bytes_list 1 BytesList | kind, float_list 2 FloatList | kind, int64_list 3 Int64List | kind",
    "Features": "feature 1 {string: Feature}",
    "FeatureList": "feature 1 [Feature]",
    "FeatureLists": "feature_list 1 {string: FeatureList}",
    "Example": "features 1 Features",
    "SequenceExample": "context 1 Features, feature_lists 2 FeatureLists",
}

MESSAGES: Mapping[str, str] = {**_GRAPH, **_TENSOR, **_FUNCTION, **_SESSION, **_SAVING, **_SUMMARY, **_EXAMPLE}
