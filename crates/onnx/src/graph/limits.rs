//! What a graph may ask for before an engine sees it: no loops, and no constants of more elements than a machine holds.
//!
//! Sizes that are computed while the graph runs are not bounded here; SECURITY.md says so.

use std::collections::HashMap;

use unspool_core::{Error, Result};

use super::proto::{Model, Node, Tensor};
use super::wire::varints;

/// Elements that a constant may be made of without lying in a file: a causal mask of 32,768 positions.
const MAX_ELEMENTS: u128 = 1 << 30;

/// Constants of more numbers are weights, not shapes.
const MAX_SHAPE: usize = 64;

/// Operators of a graph: engines walk along them, and a chain of hundreds of thousands exhausts their stacks. Exported models
/// of 80 layers have about 20,000.
const MAX_NODES: usize = 1 << 15;

/// Operators whose result has as many elements as their largest input.
const KEEPING: [&str; 8] = ["Identity", "Cast", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Neg"];

/// Checks `model`, which has `bytes` bytes with its external data.
///
/// # Errors
///
/// An operator that loops; a tensor with more elements than its bytes can hold; an operator that makes more elements of
/// constants than are allowed. The message names it.
pub(super) fn check(model: &Model, bytes: u64) -> Result<()> {
    let tensors = model.tensors();
    tensors.iter().try_for_each(|tensor| check_tensor(tensor, bytes))?;
    let mut numbers: HashMap<&str, Vec<i64>> = HashMap::new();
    numbers.extend(tensors.iter().filter_map(|tensor| Some((tensor.name.as_str(), shape_of(tensor)?))));
    let mut nodes = Vec::new();
    model.walk(&mut |node| {
        nodes.push(node);
        for attribute in node.attribute.iter().filter(|_| node.op_type == "Constant") {
            let ints = Some(attribute.ints.clone()).filter(|ints| !ints.is_empty());
            if let (Some(output), Some(shape)) = (node.output.first(), attribute.t.as_ref().and_then(shape_of).or(ints))
            {
                numbers.insert(output, shape);
            }
        }
    });
    if nodes.len() > MAX_NODES {
        return Err(Error::unsupported(format!(
            "the graph has {} operators, at most {MAX_NODES} are allowed; export the model with fused operators",
            nodes.len()
        )));
    }
    nodes.iter().try_for_each(|node| check_node(node, &numbers))?;
    let sizes = tensors.iter().map(|tensor| (tensor.name.as_str(), product(tensor.dims.iter().copied()))).collect();
    check_joined(&nodes, sizes, bytes)
}

/// Refuses constants that are joined to themselves until no machine holds them. `sizes` are elements of constants by name.
fn check_joined<'a>(nodes: &[&'a Node], mut sizes: HashMap<&'a str, u128>, bytes: u64) -> Result<()> {
    // What lies in the files may be joined, a few times over.
    let most = MAX_ELEMENTS.max(4 * u128::from(bytes));
    for node in nodes {
        let inputs: Option<Vec<u128>> = node.input.iter().map(|name| sizes.get(name.as_str()).copied()).collect();
        let made = match (inputs, node.op_type.as_str()) {
            (Some(inputs), "Concat") => inputs.into_iter().fold(0, u128::saturating_add),
            (Some(inputs), keeping) if KEEPING.contains(&keeping) => inputs.into_iter().max().unwrap_or(0),
            _ => continue,
        };
        let Some(output) = node.output.first() else { continue };
        if made > most {
            return Err(Error::invalid_model(format!(
                "the operator {} joins constants to {made} elements ('{output}'), at most {most} are allowed; export the \
                 model again",
                node.op_type
            )));
        }
        sizes.insert(output, made);
    }
    Ok(())
}

/// The numbers of a small integer tensor.
fn shape_of(tensor: &Tensor) -> Option<Vec<i64>> {
    let elements = |size: usize| {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number: u64, &byte| number << 8 | u64::from(byte));
        tensor.raw_data.chunks_exact(size).map(number).collect::<Vec<u64>>()
    };
    let numbers: Vec<i64> = match (tensor.data_type, &tensor.raw_data[..]) {
        _ if product(tensor.dims.iter().copied()) > MAX_SHAPE as u128 => return None,
        (INT64, []) => varints(&tensor.int64_data).map(|number| number as i64).collect(),
        (INT32, []) => varints(&tensor.int32_data).map(|number| number as i64).collect(),
        (INT64, _) => elements(8).into_iter().map(|number| number as i64).collect(),
        (INT32, _) => elements(4).into_iter().map(|number| i64::from(number as i32)).collect(),
        _ => return None,
    };
    (numbers.len() <= MAX_SHAPE).then_some(numbers)
}

const INT32: i32 = 6;
const INT64: i32 = 7;

/// Two elements of four bits are the most that a byte holds.
fn check_tensor(tensor: &Tensor, bytes: u64) -> Result<()> {
    let elements = product(tensor.dims.iter().copied());
    if elements > 2 * u128::from(bytes) + 2 {
        return Err(Error::invalid_model(format!(
            "tensor '{}' of shape {:?} has more elements than the model's files hold; download or export the model again",
            tensor.name, tensor.dims
        )));
    }
    Ok(())
}

fn product(numbers: impl Iterator<Item = i64>) -> u128 {
    numbers.fold(1, |product: u128, number| product.saturating_mul(number.unsigned_abs().into()))
}

fn check_node(node: &Node, numbers: &HashMap<&str, Vec<i64>>) -> Result<()> {
    let input = |place: usize| node.input.get(place).and_then(|name| numbers.get(name.as_str()));
    let made = match node.op_type.as_str() {
        "Loop" | "Scan" => {
            return Err(Error::unsupported(format!(
                "the graph has the operator {}, whose end nobody can know and which decoders do not need; export the model \
                 without loops",
                node.op_type
            )));
        }
        "ConstantOfShape" => input(0).map(|shape| product(shape.iter().copied())),
        "Expand" | "Tile" => input(1).map(|shape| product(shape.iter().copied())),
        "OneHot" => input(1).map(|depth| product(depth.iter().copied())),
        "Pad" => input(1).map(|pads| pads.iter().map(|pad| u128::from(pad.unsigned_abs())).max().unwrap_or(0)),
        "Range" => match (input(0), input(1), input(2)) {
            (Some(start), Some(limit), Some(step)) => match (start.first(), limit.first(), step.first()) {
                (Some(start), Some(limit), Some(step)) => Some(
                    (i128::from(*limit) - i128::from(*start)).unsigned_abs() / u128::from(step.unsigned_abs().max(1)),
                ),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    match made.filter(|&elements| elements > MAX_ELEMENTS) {
        Some(elements) => Err(Error::invalid_model(format!(
            "the operator {} makes a constant of {elements} elements ('{}'), at most {MAX_ELEMENTS} are allowed; export the \
             model with this constant in its files",
            node.op_type,
            node.output.first().map_or("", String::as_str)
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::{Attribute, Graph};
    use super::*;

    fn numbers(name: &str, values: &[i64]) -> Tensor {
        let dims = vec![values.len() as i64];
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into();
        Tensor { name: name.to_owned(), dims, data_type: INT64, raw_data, ..Tensor::default() }
    }

    fn node(op_type: &str, input: &[&str], attribute: Vec<Attribute>) -> Node {
        let input = input.iter().map(|&name| name.to_owned()).collect();
        Node { op_type: op_type.to_owned(), input, output: vec!["made".to_owned()], attribute, ..Node::default() }
    }

    fn why(node: Node, initializer: Vec<Tensor>) -> Option<String> {
        let graph = Some(Graph { node: vec![node], initializer, ..Graph::default() });
        check(&Model { graph, ..Model::default() }, 1000).err().map(|error| error.to_string())
    }

    #[test]
    fn constants_that_grow_by_joining_and_chains_without_end_are_refused() {
        let name = |number: usize| format!("c{number}");
        let chain = |op_type: &str, length: usize| {
            let link = |number: usize| {
                let input = vec![name(number); if op_type == "Concat" { 2 } else { 1 }];
                Node { op_type: op_type.to_owned(), input, output: vec![name(number + 1)], ..Node::default() }
            };
            let graph = Graph {
                node: (0..length).map(link).collect(),
                initializer: vec![numbers("c0", &[1])],
                ..Graph::default()
            };
            check(&Model { graph: Some(graph), ..Model::default() }, 1000).err().map(|error| error.to_string())
        };
        assert_eq!(chain("Concat", 30), None);
        assert!(chain("Concat", 45).unwrap().contains("joins constants to 2147483648 elements"));
        assert_eq!(chain("Identity", 1000), None);
        assert!(chain("Identity", 40_000).unwrap().contains("40000 operators"));
    }

    #[test]
    fn constants_beyond_any_machine_are_refused() {
        let huge = || numbers("n", &[1 << 20, 1 << 20]);
        let told = why(node("ConstantOfShape", &["n"], Vec::new()), vec![huge()]).unwrap();
        assert!(
            told.contains("ConstantOfShape") && told.contains("1099511627776") && told.contains("'made'"),
            "{told}"
        );
        assert!(why(node("Expand", &["x", "n"], Vec::new()), vec![huge()]).is_some());
        assert!(why(node("Tile", &["x", "n"], Vec::new()), vec![huge()]).is_some());
        let ends = vec![numbers("a", &[0]), numbers("n", &[i64::MAX]), numbers("s", &[1])];
        assert!(why(node("Range", &["a", "n", "s"], Vec::new()), ends).is_some());
        // 2^42, packed as a number of its own.
        let packed = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01].into();
        let packed = Tensor { raw_data: Vec::new().into(), int64_data: packed, dims: vec![1], ..huge() };
        assert!(why(node("ConstantOfShape", &["n"], Vec::new()), vec![packed]).is_some());
        // A mask of 32,768 positions, and a size that is computed.
        assert_eq!(why(node("ConstantOfShape", &["n"], Vec::new()), vec![numbers("n", &[1 << 15, 1 << 15])]), None);
        assert_eq!(why(node("ConstantOfShape", &["computed"], Vec::new()), Vec::new()), None);
    }

    #[test]
    fn constants_of_nodes_and_of_subgraphs_count() {
        let shape = Attribute { name: "value".to_owned(), t: Some(numbers("", &[1 << 40])), ..Attribute::default() };
        let mut constant = node("Constant", &[], vec![shape]);
        constant.output = vec!["n".to_owned()];
        let inner = Graph { node: vec![constant, node("ConstantOfShape", &["n"], Vec::new())], ..Graph::default() };
        let branch = Attribute { name: "then_branch".to_owned(), g: Some(inner), ..Attribute::default() };
        assert!(why(node("If", &["c"], vec![branch]), Vec::new()).unwrap().contains("ConstantOfShape"));
    }

    #[test]
    fn loops_and_weights_without_bytes_are_refused() {
        assert!(why(node("Loop", &[], Vec::new()), Vec::new()).unwrap().contains("operator Loop"));
        let dims = vec![i64::MAX, i64::MAX];
        let told = why(node("Add", &[], Vec::new()), vec![Tensor { name: "w".to_owned(), dims, ..Tensor::default() }]);
        assert!(told.unwrap().contains("tensor 'w'"));
    }
}
