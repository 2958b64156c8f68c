use std::cell::RefCell;

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataLocation, DataType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

use super::*;
use crate::graph::{Op, Prim};
use crate::ops::reference_graph;
use crate::tensor::HostTensor;
use kernels_gen::DType;

fn info(name: &str, elem: DataType, dims: &[&str]) -> ValueInfoProto {
    let dim = |text: &&str| match text.parse() {
        Ok(value) => Dimension { dim_value: Some(value), dim_param: None },
        Err(_) => Dimension { dim_value: None, dim_param: Some(text.to_string()) },
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TypeProtoTensor { elem_type: Some(elem), shape });
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type, sequence: None }) }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    let text = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
    NodeProto { op_type: Some(op.into()), input: text(inputs), output: text(outputs), attribute, ..Default::default() }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), i: Some(i), r#type: Some(AttributeType::INT), ..Default::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), ints: ints.to_vec(), r#type: Some(AttributeType::INTS), ..Default::default() }
}

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let float_data = values.to_vec();
    TensorProto { name: Some(name.into()), dims: dims.to_vec(), data_type: Some(DataType::FLOAT), float_data, ..Default::default() }
}

fn longs(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    let int64_data = values.to_vec();
    TensorProto { name: Some(name.into()), dims: dims.to_vec(), data_type: Some(DataType::INT64), int64_data, ..Default::default() }
}

fn model(opset: i64, input: Vec<ValueInfoProto>, initializer: Vec<TensorProto>, node: Vec<NodeProto>, outputs: &[&str]) -> Vec<u8> {
    let output = outputs.iter().map(|o| ValueInfoProto { name: Some(o.to_string()), r#type: None }).collect();
    model_stating(opset, input, initializer, node, output)
}

/// A model that states the types of its outputs.
fn model_stating(
    opset: i64,
    input: Vec<ValueInfoProto>,
    initializer: Vec<TensorProto>,
    node: Vec<NodeProto>,
    output: Vec<ValueInfoProto>,
) -> Vec<u8> {
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(GraphProto { node, initializer, input, output, ..Default::default() }),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(opset) }],
        ..Default::default()
    };
    model.write_buf().unwrap()
}

fn import(bytes: &[u8]) -> Result<Model> {
    let model = parse(bytes, None, &ImportOptions::default())?;
    crate::graph::verify(&model.graph)?;
    Ok(model)
}

fn message(bytes: &[u8]) -> String {
    import(bytes).unwrap_err().to_string()
}

/// The outputs of a model of one input `x` for the given elements.
fn run(bytes: &[u8], values: &[f32]) -> Vec<(Vec<usize>, Vec<f64>)> {
    let model = import(bytes).unwrap();
    let x = HostTensor::new(model.inputs[0].1.shape.clone(), values.to_vec()).unwrap();
    let outputs = reference_graph(&model.graph, &[("x", x)]).unwrap();
    outputs.into_iter().map(|(_, t)| (t.shape, t.data)).collect()
}

fn x(dims: &[&str]) -> Vec<ValueInfoProto> {
    vec![info("x", DataType::FLOAT, dims)]
}

#[test]
fn a_small_network() {
    let weights = vec![floats("w", &[2, 3], &[1., 2., 3., -1., -2., -3.]), floats("b", &[2], &[0.5, 10.0])];
    let nodes = vec![
        node("Gemm", &["x", "w", "b"], &["h"], vec![int("transB", 1)]),
        node("Relu", &["h"], &["r"], vec![]),
        node("Softmax", &["r"], &["y"], vec![]),
    ];
    let bytes = model(17, x(&["1", "3"]), weights, nodes, &["r", "y"]);
    let outputs = run(&bytes, &[1., 1., 1.]);
    assert_eq!(outputs[0], (vec![1, 2], vec![6.5, 4.0]));
    assert!((outputs[1].1.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let imported = import(&bytes).unwrap();
    assert!(imported.graph.origins().contains(&"Gemm_0".to_string()));
    assert_eq!(imported.inputs, [("x".to_string(), TensorType::new(DType::F32, [1, 3]))]);
}

#[test]
fn all_unsupported_operators_are_listed() {
    let mut other = node("Gelu", &["x"], &["c"], vec![]);
    other.domain = Some("com.example".into());
    let nodes =
        vec![node("Loop", &["x"], &["a"], vec![]), node("Relu", &["x"], &["b"], vec![]), node("FooBar", &["x"], &["y"], vec![]), other];
    let text = message(&model(17, x(&["1"]), vec![], nodes, &["y"]));
    assert!(text.contains("FooBar, Loop, com.example.Gelu"), "{text}");
}

#[test]
fn malformed_graphs_are_errors() {
    let relu = |from, to| node("Relu", &[from], &[to], vec![]);
    let text = message(&model(17, x(&["1"]), vec![], vec![relu("b", "a"), relu("a", "b")], &["b"]));
    assert!(text.contains("cycle"), "{text}");
    let text = message(&model(17, x(&["1"]), vec![], vec![relu("nothing", "y")], &["y"]));
    assert!(text.contains("`nothing`"), "{text}");
    let text = message(&model(17, x(&["1"]), vec![], vec![relu("x", "y"), relu("x", "y")], &["y"]));
    assert!(text.contains("two values are called `y`"), "{text}");
    let text = message(&model(17, x(&["1"]), vec![], vec![relu("x", "y")], &["z"]));
    assert!(text.contains("output `z`"), "{text}");
    let text = message(&model(17, x(&["9223372036854775807", "9223372036854775807"]), vec![], vec![relu("x", "y")], &["y"]));
    assert!(text.contains("addressed"), "{text}");
    let text = message(&model(17, x(&["2"]), vec![floats("w", &[3], &[1.0])], vec![relu("x", "y")], &["y"]));
    assert!(text.contains("`w`") && text.contains("1 values"), "{text}");
    let text = message(&model(17, x(&["2"]), vec![floats("w", &[-3], &[])], vec![relu("x", "y")], &["y"]));
    assert!(text.contains("negative"), "{text}");
    let text = message(&model(6, x(&["2"]), vec![], vec![relu("x", "y")], &["y"]));
    assert!(text.contains("operator set 6"), "{text}");
    let brain = vec![info("x", DataType::BFLOAT16, &["1"])];
    assert!(message(&model(17, brain, vec![], vec![relu("x", "y")], &["y"])).contains("BFLOAT16"));
    assert!(message(b"this is no model, it is text").contains("ONNX"));
    assert!(message(b"").contains("no graph"));
    let two = vec![relu("x", "a"), node("Add", &["x", "w"], &["y"], vec![])];
    let text = message(&model(17, x(&["2"]), vec![floats("w", &[3], &[1.; 3])], two, &["y"]));
    assert!(text.contains("Add_1") && text.contains("broadcast"), "{text}");
}

#[test]
fn nodes_may_stand_in_any_order() {
    let nodes = vec![node("Neg", &["a"], &["y"], vec![]), node("Relu", &["x"], &["a"], vec![])];
    assert_eq!(run(&model(17, x(&["2"]), vec![], nodes, &["y"]), &[-1.0, 2.0])[0].1, [0.0, -2.0]);
}

#[test]
fn cut_files_are_errors_and_nothing_panics() {
    let weights = vec![floats("w", &[3, 2], &[1.0; 6])];
    let bytes = model(17, x(&["4", "3"]), weights, vec![node("MatMul", &["x", "w"], &["y"], vec![])], &["y"]);
    assert!(import(&bytes).is_ok());
    for end in 0..bytes.len() {
        let _ = parse(&bytes[..end], None, &ImportOptions::default());
    }
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let _ = parse(&changed, None, &ImportOptions::default());
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    // Graph in attribute in node in graph...: fields 6, 5 and 1, innermost first.
    let mut inner = Vec::new();
    for depth in 0..60_000 {
        let tag = [6 << 3 | 2, 5 << 3 | 2, 1 << 3 | 2][depth % 3];
        let mut outer = [vec![tag], varint(inner.len())].concat();
        // Written back to front, so that the file is made in one pass.
        outer.reverse();
        inner.extend(outer);
    }
    inner.reverse();
    let text = match parse(&[&[7 << 3 | 2][..], &varint(inner.len()), &inner].concat(), None, &ImportOptions::default()) {
        Ok(_) => String::new(),
        Err(e) => e.to_string(),
    };
    assert!(text.contains("too deep"), "{text}");
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn open_dimensions_take_their_sizes_from_the_options() {
    let bytes = model(17, x(&["N", "L", "2"]), vec![], vec![node("Relu", &["x"], &["y"], vec![])], &["y"]);
    assert!(message(&bytes).contains("`N`"));
    let dims = HashMap::from([("L".to_string(), 5)]);
    let options = ImportOptions { batch: Some(4), dims, ..Default::default() };
    assert_eq!(parse(&bytes, None, &options).unwrap().inputs[0].1.shape, [4, 5, 2]);
    let shaped = |name: &str, shape: &[usize]| {
        let shapes = HashMap::from([(name.to_string(), shape.to_vec())]);
        parse(&bytes, None, &ImportOptions { shapes, ..Default::default() })
    };
    assert_eq!(shaped("x", &[7, 1, 2]).unwrap().inputs[0].1.shape, [7, 1, 2]);
    assert!(shaped("x", &[7, 1, 3]).unwrap_err().to_string().contains("fixes dimension 2 at 2"));
    assert!(shaped("x", &[7]).unwrap_err().to_string().contains("3 dimensions"));
    let shapes = HashMap::from([("q".into(), vec![])]);
    let both = ImportOptions { batch: Some(1), dims: HashMap::from([("L".into(), 1)]), shapes, ..Default::default() };
    assert!(parse(&bytes, None, &both).unwrap_err().to_string().contains("no input `q`"));
    let dims = HashMap::from([("L".into(), 1), ("M".into(), 1)]);
    let unknown = parse(&bytes, None, &ImportOptions { batch: Some(1), dims, ..Default::default() }).unwrap_err().to_string();
    assert!(unknown.contains("no open dimension `M`") && unknown.contains("`L`, `N`"), "{unknown}");
}

#[test]
fn shapes_are_computed_at_import() {
    let constants = vec![longs("zero", &[], &[0]), longs("rest", &[1], &[-1])];
    let nodes = vec![
        node("Shape", &["x"], &["s"], vec![]),
        node("Gather", &["s", "zero"], &["n"], vec![int("axis", 0)]),
        node("Unsqueeze", &["n", "axis0"], &["n1"], vec![]),
        node("Concat", &["n1", "rest"], &["t"], vec![int("axis", 0)]),
        node("Reshape", &["x", "t"], &["y"], vec![]),
    ];
    let constants = constants.into_iter().chain([longs("axis0", &[1], &[0])]).collect();
    let outputs = run(&model(17, x(&["2", "3", "4"]), constants, nodes, &["y"]), &[0.0; 24]);
    assert_eq!(outputs[0].0, [2, 12]);
    let nodes = vec![node("Cast", &["x"], &["i"], vec![int("to", 7)]), node("Reshape", &["x", "i"], &["y"], vec![])];
    let text = message(&model(17, x(&["1"]), vec![], nodes, &["y"]));
    assert!(text.contains("known at import"), "{text}");
}

#[test]
fn inputs_that_are_parameters_can_be_fixed() {
    let inputs = vec![info("x", DataType::FLOAT, &["2", "3"]), info("axes", DataType::INT64, &["K"])];
    let bytes = model(18, inputs, vec![], vec![node("ReduceSum", &["x", "axes"], &["y"], vec![])], &["y"]);
    let fix = |name: &str, tensor: HostTensor| {
        let constants = HashMap::from([(name.to_string(), tensor)]);
        parse(&bytes, None, &ImportOptions { batch: Some(1), constants, ..Default::default() })
    };
    let open = parse(&bytes, None, &ImportOptions { batch: Some(1), ..Default::default() });
    assert!(open.unwrap_err().to_string().contains("fix the values"));
    let fixed = fix("axes", HostTensor::new([1], vec![1i32]).unwrap()).unwrap();
    assert_eq!((fixed.inputs.len(), fixed.outputs[0].1.shape.as_slice()), (1, &[2usize, 1][..]));
    assert!(fix("axes", HostTensor::new([1], vec![1f32]).unwrap()).unwrap_err().to_string().contains("the model takes i32[1]"));
    assert!(fix("axe", HostTensor::new([1], vec![1i32]).unwrap()).unwrap_err().to_string().contains("no input `axe`"));
}

#[test]
fn slices_follow_python() {
    let cases: &[(i64, i64, i64, &[f64])] = &[
        (1, i64::MAX, 1, &[1., 2., 3., 4.]),
        (-2, i64::MAX, 1, &[3., 4.]),
        (i64::MAX, i64::MIN, -1, &[4., 3., 2., 1., 0.]),
        (3, 0, -2, &[3., 1.]),
        (0, -1, 2, &[0., 2.]),
        (4, 2, 1, &[]),
        (0, 5, 9, &[0.]),
    ];
    for &(start, end, step, expected) in cases {
        let constants = vec![longs("s", &[1], &[start]), longs("e", &[1], &[end]), longs("a", &[1], &[0]), longs("t", &[1], &[step])];
        let bytes = model(13, x(&["5"]), constants, vec![node("Slice", &["x", "s", "e", "a", "t"], &["y"], vec![])], &["y"]);
        assert_eq!(run(&bytes, &[0., 1., 2., 3., 4.])[0].1, expected, "{start}..{end} by {step}");
    }
    let old = node("Slice", &["x"], &["y"], vec![ints("starts", &[1]), ints("ends", &[3])]);
    assert_eq!(run(&model(9, x(&["5"]), vec![], vec![old], &["y"]), &[0., 1., 2., 3., 4.])[0].1, [1., 2.]);
}

#[test]
fn operator_sets_differ() {
    let softmax = |opset| run(&model(opset, x(&["1", "2", "2"]), vec![], vec![node("Softmax", &["x"], &["y"], vec![])], &["y"]), &[0.0; 4]);
    assert_eq!(softmax(11)[0].1, [0.25; 4]);
    assert_eq!(softmax(13)[0].1, [0.5; 4]);
    let clip = |opset, constants, inputs: &[&str], attributes| {
        run(&model(opset, x(&["3"]), constants, vec![node("Clip", inputs, &["y"], attributes)], &["y"]), &[-9.0, 0.5, 9.0])[0].1.clone()
    };
    let max = AttributeProto { name: Some("max".into()), f: Some(1.0), r#type: Some(AttributeType::FLOAT), ..Default::default() };
    assert_eq!(clip(10, vec![], &["x"], vec![max]), [-9.0, 0.5, 1.0]);
    assert_eq!(clip(11, vec![floats("m", &[], &[0.0])], &["x", "m"], vec![]), [0.0, 0.5, 9.0]);
    let mean = |opset, constants, inputs: &[&str], attributes| {
        run(&model(opset, x(&["2", "2"]), constants, vec![node("ReduceMean", inputs, &["y"], attributes)], &["y"]), &[1., 2., 3., 4.])[0]
            .clone()
    };
    assert_eq!(mean(13, vec![], &["x"], vec![ints("axes", &[1]), int("keepdims", 0)]), (vec![2], vec![1.5, 3.5]));
    assert_eq!(mean(18, vec![longs("a", &[1], &[-2])], &["x", "a"], vec![]), (vec![1, 2], vec![2.0, 3.0]));
}

#[test]
fn pads_repeat_elements() {
    let mode = |mode: &str, pads: &[i64]| {
        let mode =
            AttributeProto { name: Some("mode".into()), s: Some(mode.into()), r#type: Some(AttributeType::STRING), ..Default::default() };
        let pad = node("Pad", &["x", "p"], &["y"], vec![mode]);
        run(&model(19, x(&["3"]), vec![longs("p", &[2], pads)], vec![pad], &["y"]), &[1., 2., 3.])[0].1.clone()
    };
    assert_eq!(mode("constant", &[1, 2]), [0., 1., 2., 3., 0., 0.]);
    assert_eq!(mode("constant", &[-1, 1]), [2., 3., 0.]);
    assert_eq!(mode("edge", &[2, 1]), [1., 1., 1., 2., 3., 3.]);
    assert_eq!(mode("reflect", &[2, 2]), [3., 2., 1., 2., 3., 2., 1.]);
    assert_eq!(mode("wrap", &[1, 2]), [3., 1., 2., 3., 1., 2.]);
}

#[test]
fn weights_may_lie_beside_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<u8> = [9.0f32, 1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.path().join("w.bin"), values).unwrap();
    let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let external = |location: &str| TensorProto {
        float_data: vec![],
        data_location: Some(DataLocation::EXTERNAL),
        external_data: vec![entry("location", location), entry("offset", "4"), entry("length", "8")],
        ..floats("w", &[2], &[])
    };
    let with = |location| model(17, x(&["2"]), vec![external(location)], vec![node("Add", &["x", "w"], &["y"], vec![])], &["y"]);
    let import = |location, folder| parse(&with(location), folder, &ImportOptions::default());
    let imported = import("w.bin", Some(folder.path())).unwrap();
    let ones = HostTensor::new([2], vec![1f32; 2]).unwrap();
    assert_eq!(reference_graph(&imported.graph, &[("x", ones)]).unwrap()[0].1.data, [2.0, 3.0]);
    assert!(import("w.bin", None).unwrap_err().to_string().contains("outside"));
    assert!(import("../w.bin", Some(folder.path())).unwrap_err().to_string().contains("leaves"));
    assert!(import("other.bin", Some(folder.path())).unwrap_err().to_string().contains("other.bin"));
}

#[test]
fn tensors_of_every_element_type() {
    let tensor = |ty, raw: &[u8]| TensorProto {
        dims: vec![1],
        data_type: Some(ty),
        raw_data: Some(RefCell::new(raw.to_vec())),
        name: Some("t".into()),
        ..Default::default()
    };
    let parse = |t: TensorProto| {
        let bytes = {
            use rten_onnx::protobuf::{EncodeMessage, ValueWriter};
            let mut bytes = Vec::new();
            t.encode(&mut ValueWriter::new(&mut bytes)).unwrap();
            bytes
        };
        parse_tensor(&bytes)
    };
    let read = |ty, raw: &[u8]| parse(tensor(ty, raw)).unwrap().1.to_f64()[0];
    assert_eq!(read(DataType::FLOAT, &1.5f32.to_le_bytes()), 1.5);
    assert_eq!(read(DataType::INT64, &(-7i64).to_le_bytes()), -7.0);
    assert_eq!(read(DataType::UINT32, &u32::MAX.to_le_bytes()), u32::MAX as f64);
    assert_eq!(read(DataType::INT8, &[0xff]), -1.0);
    assert_eq!(read(DataType::BOOL, &[2]), 1.0);
    assert_eq!([read(DataType::INT4, &[0x38]), read(DataType::UINT4, &[0x38])], [-8.0, 8.0]);
    assert_eq!([read(DataType::INT16, &[0, 0x80]), read(DataType::UINT16, &[0, 0x80])], [-32_768.0, 32_768.0]);
    assert_eq!([read(DataType::FLOAT8E4M3FN, &[0x7e]), read(DataType::FLOAT8E5M2, &[0x7b])], [448.0, 57_344.0]);
    assert!(parse(tensor(DataType::INT16, &[0; 3])).unwrap_err().to_string().contains("3 bytes"));
    assert!(parse(tensor(DataType::INT64, &i64::MAX.to_le_bytes())).unwrap_err().to_string().contains("does not fit"));
    assert!(parse(tensor(DataType::DOUBLE, &[0; 8])).unwrap_err().to_string().contains("DOUBLE"));
    assert!(parse(tensor(DataType::INT32, &[0; 3])).is_err());
}

#[test]
fn sizes_past_what_is_counted_are_refused_before_anything_is_allocated() {
    let node_of = |op: &str, inputs: &[&str], attributes| vec![node(op, inputs, &["y"], attributes)];
    let far = 3_000_000_000;
    let mut cases = Vec::new();
    for op in ["AveragePool", "MaxPool"] {
        for pads in [[far; 4], [0, 0, 0, far], [i64::MAX; 4], [1 << 20; 4]] {
            let attributes = vec![ints("kernel_shape", &[2, 2]), ints("pads", &pads), ints("strides", &[1 << 19, 1 << 19])];
            cases.push((x(&["1", "1", "9", "9"]), vec![], node_of(op, &["x"], attributes)));
        }
        // The window view would be too large, though operand and result are not.
        let attributes = vec![ints("kernel_shape", &[1 << 17]), ints("pads", &[1 << 17, 1 << 17])];
        cases.push((x(&["1", "1", "9"]), vec![], node_of(op, &["x"], attributes)));
    }
    // As many means as the operand and its padding have places.
    let attributes = vec![ints("kernel_shape", &[1]), ints("pads", &[1 << 30, 0])];
    cases.push((x(&["1", "1", "9"]), vec![], node_of("AveragePool", &["x"], attributes)));
    let attributes = vec![ints("kernel_shape", &[2]), int("ceil_mode", 1), ints("dilations", &[1 << 40])];
    cases.push((x(&["1", "1", "9"]), vec![], node_of("MaxPool", &["x"], [attributes, vec![ints("pads", &[1 << 40, 9])]].concat())));
    for pads in [[far; 4], [0, 0, far, 0], [1 << 20; 4]] {
        let weights = floats("w", &[1, 1, 1, 1], &[1.0]);
        let attributes = vec![ints("pads", &pads), ints("strides", &[1 << 19, 1 << 19])];
        cases.push((x(&["1", "1", "9", "9"]), vec![weights], node_of("Conv", &["x", "w"], attributes)));
    }
    let text = |name: &str, s: &str| AttributeProto {
        name: Some(name.into()),
        s: Some(s.into()),
        r#type: Some(AttributeType::STRING),
        ..Default::default()
    };
    for mode in ["constant", "edge", "reflect", "wrap"] {
        cases.push((x(&["3"]), vec![longs("p", &[2], &[0, far])], node_of("Pad", &["x", "p"], vec![text("mode", mode)])));
    }
    let sides = || vec![longs("s", &[2], &[1 << 16, 1 << 16])];
    cases.push((x(&["1", "1"]), sides(), node_of("Expand", &["x", "s"], vec![])));
    cases.push((x(&["1", "1"]), sides(), node_of("Tile", &["x", "s"], vec![])));
    cases.push((x(&["1"]), sides(), node_of("ConstantOfShape", &["s"], vec![])));
    cases.push((x(&["65536", "1", "65536"]), vec![], node_of("Relu", &["x"], vec![])));
    for (input, constants, nodes) in cases {
        let shown = format!("{nodes:?}");
        let error = import(&model(13, input, constants, nodes, &["y"])).expect_err(&shown);
        assert_eq!(error.kind(), crate::ErrorKind::Limit, "{error}: {shown}");
    }
    let split = node_of("Split", &["x"], vec![int("num_outputs", 1 << 40)]);
    assert!(message(&model(18, x(&["4"]), vec![], split, &["y"])).contains("1099511627776"));
    let wide = Op::from(Prim::Broadcast { shape: vec![1 << 16, 1 << 16], dims: vec![] });
    let one = crate::ops::RefTensor::new(DType::F32, [], vec![1.0]).unwrap();
    assert_eq!(crate::ops::reference(&wide, &[&one]).unwrap_err().kind(), crate::ErrorKind::Limit);
}

#[test]
fn means_over_far_padding_take_no_more_than_their_windows() {
    // Windows of 2 in 2^30 zeros, 9 elements and 2^30 zeros; the middle ones meet elements.
    let attributes = |count| {
        vec![
            ints("kernel_shape", &[2]),
            ints("pads", &[1 << 30, (1 << 30) - 9]),
            ints("strides", &[1 << 29]),
            int("count_include_pad", count),
        ]
    };
    for (count, middle) in [(0, 1.0), (1, 1.0)] {
        let bytes = model(13, x(&["1", "1", "9"]), vec![], vec![node("AveragePool", &["x"], &["y"], attributes(count))], &["y"]);
        let model = import(&bytes).unwrap();
        let mut builder = crate::graph::GraphBuilder::new();
        let x = builder.input("x", model.inputs[0].1.clone()).unwrap();
        let pools = model.graph.nodes().iter().filter_map(|n| if let Op::Composite(pool) = &n.op { Some(pool) } else { None });
        pools.for_each(|pool| assert!(pool.decompose(&mut builder, &[x]).is_ok()));
        let graph = builder.finish();
        assert!(graph.nodes().len() > 3);
        assert_eq!(model.outputs[0].1.shape, [1, 1, 4]);
        assert!(graph.nodes().iter().all(|n| !matches!(&n.op, Op::Prim(Prim::Constant(c)) if c.tensor().num_elems() > 4)));
        assert_eq!(run(&bytes, &[1.0; 9])[0].1, [0.0, 0.0, middle, 0.0]);
    }
}

#[test]
fn what_a_model_states_must_be_what_it_computes() {
    let with = |output: ValueInfoProto| model_stating(13, x(&["2", "3"]), vec![], vec![node("Relu", &["x"], &["y"], vec![])], vec![output]);
    for dims in [["2", "3"], ["N", "3"], ["N", "M"]] {
        import(&with(info("y", DataType::FLOAT, &dims))).unwrap();
    }
    for (output, part) in [
        (info("y", DataType::FLOAT, &["2", "4"]), "size 4 for dimension 1"),
        (info("y", DataType::FLOAT, &["-1", "3"]), "size -1 for dimension 0"),
        (info("y", DataType::FLOAT, &["6"]), "1 dimensions"),
        (info("y", DataType::INT32, &["2", "3"]), "INT32"),
        (info("y", DataType::DOUBLE, &["2", "3"]), "DOUBLE"),
    ] {
        let message = message(&with(output));
        assert!(message.contains(part) && message.contains("output `y`") && message.contains("f32[2, 3]"), "{message}");
    }
    let negative = message(&model(13, x(&["2", "-5"]), vec![], vec![node("Relu", &["x"], &["y"], vec![])], &["y"]));
    assert!(negative.contains("-5") && negative.contains("dimension 1"), "{negative}");
}

#[test]
fn a_truncated_model_is_called_one_and_a_newer_operator_set_is_read() {
    let relu = |opset| model(opset, x(&["2"]), vec![], vec![node("Relu", &["x"], &["y"], vec![])], &["y"]);
    let whole = relu(NEWEST_OPSET);
    for end in 1..whole.len() {
        let error = import(&whole[..end]).expect_err("cut");
        assert_eq!(error.kind(), crate::ErrorKind::Malformed, "cut at {end}: {error}");
    }
    assert!(message(&whole[..whole.len() - 9]).contains("truncated"));
    assert_eq!(import(&relu(NEWEST_OPSET + 1)).unwrap().opset, NEWEST_OPSET + 1);
}

/// Codes of f16 in `int32_data` and in raw bytes, a mixed normalisation, and an operator of several steps that is rounded once.
#[test]
fn half_floats_are_read_and_rounded_once() {
    let codes = [0x3c00, 0xc100, 0x7bff];
    let named = TensorProto { name: Some("w".into()), dims: vec![3], data_type: Some(DataType::FLOAT16), ..Default::default() };
    let listed = TensorProto { int32_data: codes.to_vec(), ..named.clone() };
    let bytes: Vec<u8> = codes.iter().flat_map(|&c| (c as u16).to_le_bytes()).collect();
    let raw = TensorProto { raw_data: Some(RefCell::new(bytes)), ..named };
    for weights in [listed, raw] {
        let nodes = vec![node("Mean", &["x", "w"], &["y"], vec![])];
        let model = import(&model(17, vec![info("x", DataType::FLOAT16, &["3"])], vec![weights], nodes, &["y"])).unwrap();
        let x = HostTensor::from_f64(DType::F16, [3], &[2.0, 0.5, 65_504.0]).unwrap();
        let value = reference_graph(&model.graph, &[("x", x)]).unwrap().remove(0).1;
        assert_eq!((value.dtype, value.data), (DType::F16, vec![1.5, -1.0, 65_504.0]));
    }
    let floats = |name: &str| floats(name, &[1], &[1.0]);
    let nodes = vec![node("BatchNormalization", &["x", "s", "b", "m", "v"], &["y"], vec![])];
    let input = vec![info("x", DataType::FLOAT16, &["2", "1", "3"])];
    let model = import(&model(17, input, ["s", "b", "m", "v"].map(floats).to_vec(), nodes, &["y"])).unwrap();
    assert_eq!(model.outputs[0].1.dtype, DType::F16);
}

/// Four bits a weight in blocks of 16 along k, the last of them half used, with zero points by default, packed, and as floats.
#[test]
fn weights_of_four_bits_are_read_in_blocks() {
    let (k, n, block) = (24usize, 3usize, 16usize);
    let code = |row: usize, i: usize| ((row * 7 + i * 5) % 16) as u8;
    let bytes: Vec<u8> = (0..n * 2 * 8).map(|at| code(at / 16, at % 16 * 2) | code(at / 16, at % 16 * 2 + 1) << 4).collect();
    let packed = |name: &str, dims: &[i64], bytes: Vec<u8>| TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(DataType::UINT8),
        raw_data: Some(RefCell::new(bytes)),
        ..Default::default()
    };
    let scales: Vec<f32> = (0..n * 2).map(|i| 0.5 + i as f32 * 0.25).collect();
    let x: Vec<f32> = (0..k).map(|i| i as f32 - 11.5).collect();
    let zeros = [8u8 | 3 << 4, 8 | 3 << 4, 8 | 3 << 4];
    for zero in [None, Some(packed("z", &[3], zeros.to_vec())), Some(floats("z", &[3, 2], &[8.0, 3.0, 8.0, 3.0, 8.0, 3.0]))] {
        let mut inputs = vec!["x", "w", "s"];
        inputs.extend(zero.as_ref().map(|_| "z"));
        let attributes = vec![int("K", k as i64), int("N", n as i64), int("block_size", block as i64), int("bits", 4)];
        let product = NodeProto { domain: Some("com.microsoft".into()), ..node("MatMulNBits", &inputs, &["y"], attributes) };
        let mut weights = vec![packed("w", &[3, 2, 8], bytes.clone()), floats("s", &[3, 2], &scales)];
        weights.extend(zero.clone());
        let input = vec![info("x", DataType::FLOAT, &["1", "24"])];
        let graph = import(&model(17, input, weights, vec![product], &["y"])).unwrap().graph;
        let value = reference_graph(&graph, &[("x", HostTensor::new([1, k], x.clone()).unwrap())]).unwrap().remove(0).1;
        for row in 0..n {
            let zero = |b: usize| if zero.is_some() && b == 1 { 3.0 } else { 8.0 };
            let term = |i: usize| f64::from(x[i]) * (f64::from(code(row, i)) - zero(i / block)) * f64::from(scales[row * 2 + i / block]);
            assert_eq!(value.data[row], (0..k).map(term).sum::<f64>(), "row {row}");
        }
    }
    let short = vec![packed("w", &[3, 2, 7], vec![0; 42]), floats("s", &[3, 2], &scales)];
    let attributes = vec![int("K", 24), int("N", 3), int("block_size", 16)];
    let product = NodeProto { domain: Some("com.microsoft".into()), ..node("MatMulNBits", &["x", "w", "s"], &["y"], attributes) };
    let message = message(&model(17, vec![info("x", DataType::FLOAT, &["1", "24"])], short, vec![product], &["y"]));
    assert!(message.contains("48 bytes") && message.contains("6 scales"), "{message}");
}

/// Weights of INT4, in blocks along k, stay packed; what is no conversion may not compute with them.
#[test]
fn weights_of_int4_are_dequantised_from_words() {
    let (k, n, block) = (96usize, 20usize, 32usize);
    let code = |i: usize| (i * 7 + i / 5) % 16;
    let weights = TensorProto {
        name: Some("w".into()),
        dims: vec![k as i64, n as i64],
        data_type: Some(DataType::INT4),
        raw_data: Some(RefCell::new((0..k * n / 2).map(|i| (code(2 * i) | code(2 * i + 1) << 4) as u8).collect())),
        ..Default::default()
    };
    let scales: Vec<f32> = (0..k / block * n).map(|i| 0.25 + (i % 8) as f32 * 0.125).collect();
    let attributes = vec![int("axis", 0), int("block_size", block as i64)];
    let nodes = vec![node("DequantizeLinear", &["w", "s"], &["v"], attributes), node("MatMul", &["x", "v"], &["y"], vec![])];
    let input = || vec![info("x", DataType::FLOAT, &["1", "96"])];
    let given = || vec![weights.clone(), floats("s", &[(k / block) as i64, n as i64], &scales)];
    let graph = import(&model(21, input(), given(), nodes, &["y"])).unwrap().graph;
    let words = graph.nodes().iter().filter(|node| node.ty.dtype == DType::U32 && node.inputs.is_empty()).map(|node| node.ty.shape.clone());
    assert_eq!(words.collect::<Vec<_>>(), [vec![k, n.div_ceil(8)]]);
    let x: Vec<f32> = (0..k).map(|i| i as f32 - 40.0).collect();
    let value = reference_graph(&graph, &[("x", HostTensor::new([1, k], x.clone()).unwrap())]).unwrap().remove(0).1;
    for j in 0..n {
        let weight = |p: usize| (code(p * n + j) as f64 + 8.0) % 16.0 - 8.0;
        let sum: f64 = (0..k).map(|p| f64::from(x[p]) * weight(p) * f64::from(scales[p / block * n + j])).sum();
        assert_eq!(value.data[j], sum, "column {j}");
    }
    let added = vec![node("Add", &["w", "w"], &["y"], vec![])];
    let message = import(&model(21, input(), given(), added, &["y"])).unwrap_err().to_string();
    assert!(message.contains("`w`") && message.contains("Int4") && message.contains("dequantise"), "{message}");
}
