"""The messages of TensorFlow's graphs and SavedModels."""

from __future__ import annotations

from opscope.readers.protobuf import Schema

SCHEMA = Schema("""
SavedModel saved_model_schema_version=1:int meta_graphs=2:MetaGraphDef*
MetaGraphDef meta_info_def=1:MetaInfoDef graph_def=2:GraphDef saver_def=3:span collection_def=4:span*
 signature_def=5:SignatureEntry* asset_file_def=6:span* object_graph_def=7:span
MetaInfoDef meta_graph_version=1:string tags=4:string* tensorflow_version=5:string
SignatureEntry key=1:string value=2:SignatureDef
SignatureDef inputs=1:TensorInfoEntry* outputs=2:TensorInfoEntry* method_name=3:string
TensorInfoEntry key=1:string value=2:TensorInfo
TensorInfo name=1:string dtype=2:int tensor_shape=3:TensorShapeProto
GraphDef node=1:NodeDef* library=2:FunctionDefLibrary version=3:int versions=4:VersionDef debug_info=5:span
VersionDef producer=1:int min_consumer=2:int
NodeDef name=1:string op=2:string input=3:string* device=4:string attr=5:AttrEntry* experimental_debug_info=6:span
 experimental_type=7:span
AttrEntry key=1:string value=2:AttrValue
AttrValue list=1:ListValue s=2:bytes i=3:int f=4:float b=5:int type=6:int shape=7:TensorShapeProto tensor=8:TensorProto
 placeholder=9:string func=10:NameAttrList
ListValue s=2:bytes* i=3:int* f=4:float* b=5:int* type=6:int* shape=7:TensorShapeProto* tensor=8:TensorProto*
 func=9:NameAttrList*
NameAttrList name=1:string attr=2:AttrEntry*
TensorShapeProto dim=2:Dim* unknown_rank=3:int
Dim size=1:int name=2:string
TensorProto dtype=1:int tensor_shape=2:TensorShapeProto version_number=3:int tensor_content=4:span float_val=5:float*
 double_val=6:double* int_val=7:int* string_val=8:span* int64_val=10:int* bool_val=11:int* half_val=13:int*
FunctionDefLibrary function=1:FunctionDef* gradient=2:span*
FunctionDef signature=1:OpDef node_def=3:NodeDef* ret=4:TextEntry* attr=5:AttrEntry* control_ret=6:TextEntry*
 arg_attr=7:ArgAttrEntry*
ArgAttrEntry key=1:uint value=2:ArgAttrs
ArgAttrs attr=1:AttrEntry*
TextEntry key=1:string value=2:string
OpDef name=1:string input_arg=2:ArgDef* output_arg=3:ArgDef*
ArgDef name=1:string description=2:string type=3:int
""")
