//! One pass over edges in their order, with a window of delta, that counts triples of edges by their places and labels.
//!
//! Edges come in groups of one key. A group is counted as the last edge of triples against what came before it, then it is added; a group
//! that delta no longer reaches is taken out. All counts fit: a window has at most n <= 2^31 edges, sums over it are below n^2 / 2, triples
//! below n^3 / 6 < 2^93.

use super::Windows;
use crate::progress::Cancel;

/// Events between two looks at the token that cancels.
const EVENTS_PER_CHECK: usize = 1 << 16;

/// Whether work at event `at` that goes on with the next `length` is to stop.
fn stops(cancel: &Cancel, at: usize, length: usize) -> bool {
    at / EVENTS_PER_CHECK != (at + length) / EVENTS_PER_CHECK && cancel.is_cancelled()
}

/// Length of the group of one key at the front.
fn group(events: &[(u32, u32)], windows: &Windows) -> usize {
    match windows.is_strict() {
        false => 1,
        true => {
            let next = windows.after(events[0].0);
            events.iter().take_while(|event| event.0 < next).count()
        }
    }
}

/// Number of triples of edges between two vertices, by their directions.
#[derive(Clone, Default)]
pub(super) struct Sequences([[[u128; 2]; 2]; 2]);

impl Sequences {
    pub fn get(&self, [a, b, c]: [usize; 3]) -> u128 {
        self.0[a][b][c]
    }

    pub fn add(&mut self, other: &Sequences) {
        for (sum, more) in self.0.as_flattened_mut().as_flattened_mut().iter_mut().zip(other.0.as_flattened().as_flattened()) {
            *sum += more;
        }
    }

    /// Adds the triples of `events`: (index, direction) in order; cancelled, it ends before it is done.
    pub fn sweep(&mut self, events: &[(u32, u32)], windows: &Windows, cancel: &Cancel) {
        let (mut one, mut two) = ([0u64; 2], [[0u64; 2]; 2]);
        let (mut oldest, mut at) = (0, 0);
        while at < events.len() {
            while windows.last[events[oldest].0 as usize] < events[at].0 {
                let gone = group(&events[oldest..], windows);
                let gone = &events[oldest..oldest + gone];
                gone.iter().for_each(|event| one[event.1 as usize] -= 1);
                for event in gone {
                    for (pairs, later) in two[event.1 as usize].iter_mut().zip(one) {
                        *pairs -= later;
                    }
                }
                oldest += gone.len();
            }
            let now = &events[at..at + group(&events[at..], windows)];
            for event in now {
                let direction = event.1 as usize;
                for (triples, pairs) in self.0.iter_mut().zip(&two) {
                    for (triples, &pairs) in triples.iter_mut().zip(pairs) {
                        triples[direction] += u128::from(pairs);
                    }
                }
            }
            for event in now {
                for (pairs, earlier) in two.iter_mut().zip(one) {
                    pairs[event.1 as usize] += earlier;
                }
            }
            now.iter().for_each(|event| one[event.1 as usize] += 1);
            if stops(cancel, at, now.len()) {
                return;
            }
            at += now.len();
        }
    }
}

/// Number of triples of two edges of one class, with labels below `L`, and a base edge with a direction, by the place of the base.
#[derive(Clone)]
pub(super) struct Sweep<const L: usize> {
    /// [direction of the base][label][label].
    base_first: [[[u128; L]; L]; 2],
    base_second: [[[u128; L]; L]; 2],
    base_third: [[[u128; L]; L]; 2],
}

/// State of one class.
#[derive(Clone, Copy)]
struct Class<const L: usize> {
    /// Edges in the window, by label.
    count: [u64; L],
    /// Over these edges, the number of base edges up to and with each one's key, by direction.
    until: [[u64; 2]; L],
    /// The same before its key.
    before: [[u64; 2]; L],
}

/// States of the classes of a sweep.
#[derive(Default)]
pub(super) struct State<const L: usize> {
    classes: Vec<Class<L>>,
}

impl<const L: usize> State<L> {
    /// Makes room for that many classes, all empty.
    pub fn prepare(&mut self, classes: usize) {
        self.classes.clear();
        self.classes.resize(classes, Class { count: [0; L], until: [[0; 2]; L], before: [[0; 2]; L] });
    }
}

impl<const L: usize> Default for Sweep<L> {
    fn default() -> Self {
        let zeros = [[[0; L]; L]; 2];
        Sweep { base_first: zeros, base_second: zeros, base_third: zeros }
    }
}

impl<const L: usize> Sweep<L> {
    /// Triples whose base is edge `base`, 0 to 2, by the labels of their edges; that of the base is its direction.
    pub fn get(&self, base: usize, labels: [usize; 3]) -> u128 {
        let [a, b, c] = labels;
        match base {
            0 => self.base_first[a][b][c],
            1 => self.base_second[b][a][c],
            _ => self.base_third[c][a][b],
        }
    }

    pub fn add(&mut self, other: &Self) {
        let places = [
            (&mut self.base_first, &other.base_first),
            (&mut self.base_second, &other.base_second),
            (&mut self.base_third, &other.base_third),
        ];
        for (sums, more) in places {
            for (sum, more) in sums.as_flattened_mut().as_flattened_mut().iter_mut().zip(more.as_flattened().as_flattened()) {
                *sum += more;
            }
        }
    }

    /// Adds the triples of `events`: (index, code) in order. `read` takes a code apart into (class, label) of an edge that has a class, and
    /// the direction of an edge that is a base; an edge may be both. Cancelled, it ends before it is done.
    pub fn sweep(
        &mut self,
        events: &[(u32, u32)],
        windows: &Windows,
        cancel: &Cancel,
        state: &mut State<L>,
        read: impl Fn(u32) -> (Option<(u32, u32)>, Option<u32>),
    ) {
        let classes = &mut state.classes;
        // Pairs of edges of one class in the window, by their labels.
        let mut pairs = [[0u64; L]; L];
        // Base edges so far, and those of them that left the window.
        let (mut bases, mut gone_bases) = ([0u64; 2], [0u64; 2]);
        let (mut oldest, mut at) = (0, 0);
        while at < events.len() {
            while windows.last[events[oldest].0 as usize] < events[at].0 {
                let length = group(&events[oldest..], windows);
                let gone = &events[oldest..oldest + length];
                let before = gone_bases;
                for base in gone.iter().filter_map(|event| read(event.1).1) {
                    gone_bases[base as usize] += 1;
                }
                for (class, label) in gone.iter().filter_map(|event| read(event.1).0) {
                    let class = &mut classes[class as usize];
                    let label = label as usize;
                    class.count[label] -= 1;
                    for direction in 0..2 {
                        class.until[label][direction] -= gone_bases[direction];
                        class.before[label][direction] -= before[direction];
                    }
                }
                for (class, label) in gone.iter().filter_map(|event| read(event.1).0) {
                    for (pairs, later) in pairs[label as usize].iter_mut().zip(classes[class as usize].count) {
                        *pairs -= later;
                    }
                }
                oldest += length;
            }
            let length = group(&events[at..], windows);
            let now = &events[at..at + length];
            for event in now {
                let (class, base) = read(event.1);
                if let Some(direction) = base {
                    for (triples, pairs) in self.base_third[direction as usize].as_flattened_mut().iter_mut().zip(pairs.as_flattened()) {
                        *triples += u128::from(*pairs);
                    }
                }
                if let Some((class, label)) = class {
                    let class = &classes[class as usize];
                    for other in 0..L {
                        for direction in 0..2 {
                            let between = class.count[other] * bases[direction] - class.until[other][direction];
                            self.base_second[direction][other][label as usize] += u128::from(between);
                            let earlier = class.before[other][direction] - class.count[other] * gone_bases[direction];
                            self.base_first[direction][other][label as usize] += u128::from(earlier);
                        }
                    }
                }
            }
            for (class, label) in now.iter().filter_map(|event| read(event.1).0) {
                for (pairs, earlier) in pairs.iter_mut().zip(classes[class as usize].count) {
                    pairs[label as usize] += earlier;
                }
            }
            let before = bases;
            for base in now.iter().filter_map(|event| read(event.1).1) {
                bases[base as usize] += 1;
            }
            for (class, label) in now.iter().filter_map(|event| read(event.1).0) {
                let class = &mut classes[class as usize];
                let label = label as usize;
                class.count[label] += 1;
                for direction in 0..2 {
                    class.until[label][direction] += bases[direction];
                    class.before[label][direction] += before[direction];
                }
            }
            if stops(cancel, at, length) {
                return;
            }
            at += length;
        }
    }
}
