//! A drawing of waits: agents in columns, the waiting agent left of the one that it waits for.
//!
//! The layout is layered: circles are broken by turning edges round, columns follow the longest path, and rows follow
//! the middle of their neighbours in the column before. An edge has a place of its own in each column that it passes,
//! and its label is in the first of them, so that no label lies on another one or on an edge. Units are pixels.

use std::collections::{BTreeMap, BTreeSet};

use provost_base::visible_name;
use serde::Serialize;

/// The number of times that each column is put in order, from left to right and back.
const SWEEPS: usize = 4;

/// Most nodes of a drawing; more could not be read, and stand only in the list beside it.
const NODES_MAX: usize = 60;

/// Most characters of a label; the list beside the drawing has the rest.
const LABEL_CHARS_MAX: usize = 30;

const ROW: u32 = 34;
const BOX: u32 = 26;
const GAP: u32 = 48;
const PADDING: u32 = 10;

/// A drawing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Drawing {
    /// The width of the whole drawing.
    pub width: u32,
    /// The height of the whole drawing.
    pub height: u32,
    /// The boxes.
    pub nodes: Vec<Placed>,
    /// The lines between them.
    pub edges: Vec<Edge>,
    /// The number of edges that are left out.
    pub more: usize,
}

/// A text in a box.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Placed {
    /// The text, with hidden characters shown.
    pub text: String,
    /// The left end.
    pub x: u32,
    /// The upper end.
    pub y: u32,
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}

/// A line from the agent that waits to the one that it waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Edge {
    /// The corners of the line.
    pub points: Vec<(u32, u32)>,
    /// Whether the arrow is at the beginning of the line.
    pub backwards: bool,
    /// The thing that the agent waits for.
    pub label: Placed,
}

/// An edge before it is drawn: the agent that waits, the one that it waits for, and the thing that it waits for.
pub(crate) type Waits = (String, String, String);

/// Something with a place in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Node(usize),
    Label(usize),
    Passing,
}

struct Graph {
    names: Vec<String>,
    /// From, to, label, and whether the edge was turned round.
    edges: Vec<(usize, usize, String, bool)>,
    more: usize,
}

/// Draws edges. Several edges between the same two agents are one line; an edge from an agent to itself is left out.
pub fn draw(edges: &[Waits]) -> Drawing {
    let mut graph = gathered(edges);
    if graph.edges.is_empty() {
        return Drawing { more: graph.more, ..Drawing::default() };
    }
    turn_circles(&mut graph);
    let ranks = ranks(&graph);
    let (mut columns, paths) = columns(&graph, &ranks);
    order(&mut columns);
    placed(&graph, &columns, &paths)
}

fn gathered(all: &[Waits]) -> Graph {
    let mut names: Vec<String> = Vec::new();
    let mut labels: BTreeMap<(usize, usize), (usize, Vec<&str>)> = BTreeMap::new();
    let mut more = 0;
    for (n, (from, to, label)) in all.iter().enumerate() {
        let newcomers = [from, to].iter().filter(|it| !names.contains(it)).count();
        if from == to || names.len() + newcomers > NODES_MAX {
            more += 1;
            continue;
        }
        let [from, to] = [from, to].map(|name| {
            names.iter().position(|it| it == name).unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            })
        });
        labels.entry((from, to)).or_insert_with(|| (n, Vec::new())).1.push(label);
    }
    let mut edges: Vec<_> = labels.into_iter().collect();
    edges.sort_by_key(|(_, (n, _))| *n);
    let edges = edges.into_iter().map(|((from, to), (_, labels))| {
        let label = match labels.as_slice() {
            [one] => (*one).to_owned(),
            [one, rest @ ..] => format!("{one} and {} more", rest.len()),
            [] => String::new(),
        };
        (from, to, label, false)
    });
    Graph { edges: edges.collect(), names, more }
}

/// Turns one edge of each circle round.
fn turn_circles(graph: &mut Graph) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let mut seen = vec![Seen::Not; graph.names.len()];
    for start in 0..graph.names.len() {
        // Depth first, without recursion: a node and the next of its edges to look at.
        let mut path = if seen[start] == Seen::Not { vec![(start, 0)] } else { Vec::new() };
        while let Some((node, next)) = path.last_mut() {
            seen[*node] = Seen::Open;
            let edge = graph.edges.iter().enumerate().skip(*next).find(|(_, it)| it.0 == *node && !it.3);
            match edge.map(|(n, it)| (n, it.1)) {
                None => {
                    seen[*node] = Seen::Done;
                    path.pop();
                }
                Some((n, to)) => {
                    *next = n + 1;
                    match seen[to] {
                        Seen::Not => path.push((to, 0)),
                        Seen::Open => {
                            let edge = &mut graph.edges[n];
                            (edge.0, edge.1, edge.3) = (edge.1, edge.0, true);
                        }
                        Seen::Done => {}
                    }
                }
            }
        }
    }
}

/// Returns the column of each node: behind all nodes that wait for it.
fn ranks(graph: &Graph) -> Vec<usize> {
    let mut ranks = vec![0; graph.names.len()];
    // Without circles, no path is longer than there are nodes.
    for _ in 0..graph.names.len() {
        let mut moved = false;
        for (from, to, ..) in &graph.edges {
            if ranks[*to] <= ranks[*from] {
                ranks[*to] = ranks[*from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    ranks
}

/// A place: a column and a number in it, which is not a row yet.
type GridPosition = (usize, usize);

/// An item of a column, with the places in the column before that lead to it.
struct Slot {
    item: Item,
    before: Vec<usize>,
    /// Its number from the time when the column was made.
    id: usize,
}

/// Returns each column with its items, and the places that each edge passes. Nodes are in even columns, labels in odd ones.
fn columns(graph: &Graph, ranks: &[usize]) -> (Vec<Vec<Slot>>, Vec<Vec<GridPosition>>) {
    let count = ranks.iter().max().map_or(0, |it| it * 2 + 1);
    let mut columns: Vec<Vec<Slot>> = (0..count).map(|_| Vec::new()).collect();
    let mut of_node = vec![0; ranks.len()];
    for (node, rank) in ranks.iter().enumerate() {
        let column = &mut columns[rank * 2];
        of_node[node] = column.len();
        column.push(Slot { item: Item::Node(node), before: Vec::new(), id: column.len() });
    }
    let mut paths = Vec::new();
    for (n, (from, to, ..)) in graph.edges.iter().enumerate() {
        let mut path = vec![(ranks[*from] * 2, of_node[*from])];
        let between = ranks[*from] * 2 + 1..ranks[*to] * 2;
        for (at, column) in columns.iter_mut().enumerate().take(between.end).skip(between.start) {
            let item = if path.len() == 1 { Item::Label(n) } else { Item::Passing };
            let before = path[path.len() - 1].1;
            path.push((at, column.len()));
            column.push(Slot { item, before: vec![before], id: column.len() });
        }
        let before = path[path.len() - 1].1;
        columns[ranks[*to] * 2][of_node[*to]].before.push(before);
        path.push((ranks[*to] * 2, of_node[*to]));
        paths.push(path);
    }
    (columns, paths)
}

/// Sorts each column by the middle of its items' neighbours.
fn order(columns: &mut [Vec<Slot>]) {
    for sweep in 0..SWEEPS {
        let forwards = sweep % 2 == 0;
        for step in 1..columns.len() {
            let at = if forwards { step } else { columns.len() - 1 - step };
            let near = if forwards { at - 1 } else { at + 1 };
            let rows: BTreeMap<usize, usize> =
                columns[near].iter().enumerate().map(|(row, it)| (it.id, row)).collect();
            let mut sums: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
            let mut meet = |id: usize, row: Option<&usize>| {
                let sum = sums.entry(id).or_default();
                *sum = (sum.0 + row.copied().unwrap_or(0), sum.1 + 1);
            };
            if forwards {
                for slot in &columns[at] {
                    slot.before.iter().for_each(|it| meet(slot.id, rows.get(it)));
                }
            } else {
                for slot in &columns[near] {
                    slot.before.iter().for_each(|it| meet(*it, rows.get(&slot.id)));
                }
            }
            let mut keyed: Vec<(usize, Slot)> = Vec::new();
            for (row, slot) in std::mem::take(&mut columns[at]).into_iter().enumerate() {
                // In sixteenths of a row, so that near ones stay apart.
                let key = sums.get(&slot.id).map_or(row * 16, |(sum, count)| sum * 16 / count);
                keyed.push((key, slot));
            }
            keyed.sort_by_key(|(key, _)| *key);
            columns[at] = keyed.into_iter().map(|(_, slot)| slot).collect();
        }
    }
}

/// Returns the width of a text: a letter of the drawing's font has at most eight pixels, a letter of other scripts may have twice that.
fn width(text: &str) -> u32 {
    text.chars().map(|it| if it.is_ascii() { 8 } else { 16 }).sum::<u32>() + 2 * PADDING
}

fn placed(graph: &Graph, columns: &[Vec<Slot>], paths: &[Vec<GridPosition>]) -> Drawing {
    let short = |text: &str| visible_name(text, LABEL_CHARS_MAX);
    let text_of = |item: Item| match item {
        Item::Node(n) => short(&graph.names[n]),
        Item::Label(n) => short(&graph.edges[n].2),
        Item::Passing => String::new(),
    };
    let most = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut boxes: BTreeMap<GridPosition, Placed> = BTreeMap::new();
    let mut x = PADDING;
    for (at, column) in columns.iter().enumerate() {
        let wide = column.iter().map(|slot| width(&text_of(slot.item))).max().unwrap_or(0);
        // The column is centred in the height, counted in half rows.
        let above = (most - column.len()) as u32 * ROW / 2;
        for (row, slot) in column.iter().enumerate() {
            let text = text_of(slot.item);
            let own = if slot.item == Item::Passing { wide } else { width(&text) };
            let y = PADDING + above + row as u32 * ROW;
            let x = x + (wide - own) / 2;
            boxes.insert((at, slot.id), Placed { text, x, y, width: own, height: BOX });
        }
        x += wide + GAP;
    }
    let is_node: BTreeSet<GridPosition> = columns
        .iter()
        .enumerate()
        .flat_map(|(at, column)| column.iter().map(move |slot| (at, slot)))
        .filter(|(_, slot)| matches!(slot.item, Item::Node(_)))
        .map(|(at, slot)| (at, slot.id))
        .collect();
    let edges = graph.edges.iter().zip(paths).map(|((.., backwards), path)| {
        let mut points = Vec::new();
        for (n, place) in path.iter().enumerate() {
            let it = &boxes[place];
            let middle = it.y + it.height / 2;
            // The line enters an item from the left and leaves it on the right.
            if n > 0 {
                points.push((it.x, middle));
            }
            if n + 1 < path.len() {
                points.push((it.x + it.width, middle));
            }
        }
        Edge { points, backwards: *backwards, label: boxes[&path[1]].clone() }
    });
    let edges = edges.collect();
    let height = if most == 0 { 0 } else { most as u32 * ROW + PADDING };
    let nodes = boxes.iter().filter(|(place, _)| is_node.contains(place)).map(|(_, it)| it.clone());
    Drawing { width: x, height, nodes: nodes.collect(), edges, more: graph.more }
}
