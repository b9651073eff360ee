"""The messages of an .onnx file, as onnx.proto declares them; weights are passed over."""

from __future__ import annotations

from opscope.readers.protobuf import Schema

SCHEMA = Schema("""
ModelProto ir_version=1:int producer_name=2:string producer_version=3:string domain=4:string model_version=5:int
 doc_string=6:string graph=7:GraphProto opset_import=8:OperatorSetIdProto* metadata_props=14:StringStringEntryProto*
 training_info=20:TrainingInfoProto* functions=25:FunctionProto* configuration=26:span*
OperatorSetIdProto domain=1:string version=2:int
StringStringEntryProto key=1:string value=2:string
GraphProto node=1:NodeProto* name=2:string initializer=5:TensorProto* doc_string=10:string input=11:ValueInfoProto*
 output=12:ValueInfoProto* value_info=13:ValueInfoProto* sparse_initializer=15:SparseTensorProto*
 metadata_props=16:StringStringEntryProto*
NodeProto input=1:string* output=2:string* name=3:string op_type=4:string attribute=5:AttributeProto*
 doc_string=6:string domain=7:string overload=8:string metadata_props=9:StringStringEntryProto*
FunctionProto name=1:string input=4:string* output=5:string* attribute=6:string* node=7:NodeProto* doc_string=8:string
 opset_import=9:OperatorSetIdProto* domain=10:string attribute_proto=11:AttributeProto* value_info=12:ValueInfoProto*
 overload=13:string metadata_props=14:StringStringEntryProto*
AttributeProto name=1:string f=2:float i=3:int s=4:bytes t=5:TensorProto g=6:GraphProto floats=7:float* ints=8:int*
 strings=9:bytes* tensors=10:TensorProto* graphs=11:GraphProto* doc_string=13:string tp=14:TypeProto
 type_protos=15:TypeProto* type=20:int ref_attr_name=21:string sparse_tensor=22:SparseTensorProto
 sparse_tensors=23:SparseTensorProto*
TensorProto dims=1:int* data_type=2:int segment=3:span float_data=4:span* int32_data=5:span* string_data=6:span*
 int64_data=7:span* name=8:string raw_data=9:span double_data=10:span* uint64_data=11:span* doc_string=12:span
 external_data=13:StringStringEntryProto* data_location=14:int metadata_props=16:StringStringEntryProto*
SparseTensorProto values=1:TensorProto indices=2:TensorProto dims=3:int*
ValueInfoProto name=1:string type=2:TypeProto doc_string=3:span metadata_props=4:StringStringEntryProto*
TypeProto tensor_type=1:TensorTypeProto sequence_type=4:SequenceTypeProto map_type=5:MapTypeProto denotation=6:string
 opaque_type=7:OpaqueTypeProto sparse_tensor_type=8:TensorTypeProto optional_type=9:SequenceTypeProto
TensorTypeProto elem_type=1:int shape=2:TensorShapeProto
SequenceTypeProto elem_type=1:TypeProto
MapTypeProto key_type=1:int value_type=2:TypeProto
OpaqueTypeProto domain=1:string name=2:string
TensorShapeProto dim=1:DimensionProto*
DimensionProto dim_value=1:int dim_param=2:string denotation=3:string
TrainingInfoProto initialization=1:GraphProto algorithm=2:GraphProto
 initialization_binding=3:StringStringEntryProto* update_binding=4:StringStringEntryProto*
""")
